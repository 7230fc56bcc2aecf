"""What whoever runs the site sees of it: people's things by name and state, not their content."""

from django.contrib import admin
from django.http import HttpRequest

from explorer.models import (
    Run,
    SavedCalibration,
    SavedReport,
    SavedScenario,
    ShareLink,
    TraceUpload,
    TrafficMatrix,
)


class LookOnly(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs alone
    """Rows are made and changed by `explorer.actions`, never here; deleting is allowed."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object | None = None) -> bool:
        return False


@admin.register(SavedScenario)
class SavedScenarioAdmin(LookOnly):
    fields = ("id", "name", "owner", "visibility", "story", "forked_from", "created_at", "updated_at")
    list_display = ("name", "owner", "visibility", "updated_at")
    list_filter = ("visibility",)
    list_select_related = ("owner",)
    search_fields = ("name", "owner__username")


@admin.register(Run)
class RunAdmin(LookOnly):
    fields = (
        "id", "status", "attempts", "losses", "progress_fraction", "digest", "engine_version", "messages",
        "created_at", "started_at", "heartbeat_at", "ended_at",
    )  # fmt: skip
    list_display = ("id", "status", "attempts", "losses", "created_at", "started_at", "ended_at")
    list_filter = ("status",)


@admin.register(ShareLink)
class ShareLinkAdmin(LookOnly):
    fields = ("name", "owner", "created_at", "expires_at", "revoked_at")
    list_display = ("name", "owner", "created_at", "expires_at", "revoked_at")
    list_select_related = ("owner",)


@admin.register(SavedReport)
class SavedReportAdmin(LookOnly):
    fields = ("title", "owner", "language", "created_at", "expires_at", "revoked_at")
    list_display = ("title", "owner", "created_at", "expires_at", "revoked_at")
    list_select_related = ("owner",)


@admin.register(TraceUpload)
class TraceUploadAdmin(LookOnly):
    fields = ("name", "owner", "format", "row_count", "sha256", "created_at")
    list_display = ("name", "owner", "format", "row_count", "created_at")
    list_select_related = ("owner",)


@admin.register(TrafficMatrix)
class TrafficMatrixAdmin(LookOnly):
    fields = ("name", "owner", "form", "rank_count", "server", "sha256", "created_at")
    list_display = ("name", "owner", "form", "rank_count", "created_at")
    list_select_related = ("owner",)


@admin.register(SavedCalibration)
class SavedCalibrationAdmin(LookOnly):
    fields = ("name", "owner", "chip", "row_count", "slug", "created_at")
    list_display = ("name", "owner", "chip", "row_count", "created_at")
    list_select_related = ("owner",)
