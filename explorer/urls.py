"""Which view answers which address."""

from django.contrib import admin
from django.contrib.auth.views import LogoutView
from django.urls import include, path, re_path

from explorer.views import (
    accounts,
    beside,
    boundaries,
    calibrate,
    compare,
    edit,
    explore,
    graph,
    home,
    library,
    matrices,
    measured,
    pages,
    reports,
    runs,
    sensitivity,
    share,
    traces,
    workbench,
)

scenario_patterns = [
    path("", workbench.workbench, name="workbench"),
    re_path(
        r"^(?P<tab>fabric|memory|serving|iteration|reliability|cost)/$", workbench.workbench, name="workbench"
    ),
    path("edit/", edit.edit, name="edit"),
    path("fork/", edit.fork, name="fork"),
    path("pin/", edit.pin, name="pin"),
    path("save/", edit.save, name="save"),
    path("share/", edit.share, name="share"),
    path("visibility/", edit.visibility, name="visibility"),
    path("rename/", edit.rename, name="rename"),
    path("delete/", edit.delete, name="delete"),
    path("undo/", edit.undo, name="undo"),
    path("redo/", edit.redo, name="redo"),
    path("go/", edit.go, name="go"),
    path("cancel/", edit.cancel, name="cancel"),
    re_path(r"^(?P<varied>schedulers|splits)/$", beside.compared, name="beside"),
    re_path(r"^(?P<varied>schedulers|splits)/run/$", beside.run, name="run_beside"),
    path("explore/", explore.explore, name="explore"),
    path("explore/start/", explore.start, name="start_sweep"),
    path("topologies/", matrices.topologies, name="topologies"),
    path("boundaries/", boundaries.ends, name="boundaries"),
    path("sensitivity/", sensitivity.sensitivity, name="sensitivity"),
    path("scenario.yaml", library.scenario_yaml, name="scenario_yaml"),
]

handler400 = pages.bad_request

urlpatterns = [
    path("", home.home, name="home"),
    path("start/", home.start, name="start"),
    path("stories/<slug:slug>/", home.start_story, name="story"),
    path("s/<uuid:pk>/", include(scenario_patterns)),
    path("runs/<uuid:pk>/panel/<slug:tab>/", runs.run_panel, name="panel"),
    path("runs/<uuid:pk>/why/<str:metric>/", runs.why, name="why"),
    path("runs/<uuid:pk>/trace.json", runs.trace_json, name="trace_json"),
    re_path(r"^runs/(?P<pk>[0-9a-f-]{36})/records\.(?P<suffix>csv|parquet)$", runs.records, name="records"),
    re_path(r"^runs/(?P<pk>[0-9a-f-]{36})/graph/(?P<node>[a-z0-9.\-]{1,60})/$", graph.of_run, name="graph"),
    re_path(
        r"^runs/(?P<pk>[0-9a-f-]{36})/fabric\.(?P<suffix>graphml|dot)$", graph.file_of_run, name="graph_file"
    ),
    path("runs/<uuid:pk>/result.json", runs.result_json, name="result_json"),
    path("runs/<uuid:pk>/measured/", measured.measured, name="measured"),
    path("sweeps/<uuid:pk>/", explore.sweep_part, name="sweep"),
    path("sweeps/<uuid:pk>/cancel/", explore.cancel, name="cancel_sweep"),
    path("sweeps/<uuid:pk>/delete/", explore.discard, name="discard_sweep"),
    path("sweeps/<uuid:pk>/use/", explore.use, name="use_cell"),
    re_path(
        r"^sweeps/(?P<pk>[0-9a-f-]{36})/cells\.(?P<suffix>csv|json)$", explore.cells_file, name="sweep_cells"
    ),
    path("c/", compare.compare, name="compare"),
    path("c/layers/", compare.layers, name="layers"),
    path("c/export/<slug:suffix>/", compare.export, name="export"),
    path("library/", library.library, name="library"),
    re_path(r"^library/chips/(?P<slug>[a-z0-9.\-]+)/clone/$", library.clone, name="clone"),
    re_path(r"^library/(?P<kind>[a-z_]+)/(?P<slug>[a-z0-9.\-]+)/$", library.entry, name="entry"),
    path("traces/", traces.traces, name="traces"),
    re_path(r"^traces/(?P<sha256>[0-9a-f]{64})/$", traces.trace, name="trace"),
    re_path(r"^traces/(?P<sha256>[0-9a-f]{64})/use/$", traces.use, name="use_trace"),
    path("matrices/", matrices.matrices, name="matrices"),
    re_path(r"^matrices/(?P<sha256>[0-9a-f]{64})/$", matrices.matrix, name="matrix"),
    re_path(r"^matrices/(?P<sha256>[0-9a-f]{64})/study/$", matrices.study, name="study_matrix"),
    re_path(r"^matrices/(?P<sha256>[0-9a-f]{64})/delete/$", matrices.discard, name="discard_matrix"),
    path("calibrate/", calibrate.calibrate, name="calibrate"),
    path("calibrate/keep/", calibrate.keep, name="keep_calibration"),
    path("calibrate/<slug:slug>/", calibrate.kept, name="calibration"),
    path("calibrate/<slug:slug>/calibration.yaml", calibrate.file, name="calibration_yaml"),
    path("calibrate/<slug:slug>/use/", calibrate.use, name="use_calibration"),
    path("calibrate/<slug:slug>/delete/", calibrate.discard, name="discard_calibration"),
    path("reports/", reports.listing, name="reports"),
    path("reports/new/", reports.new, name="new_report"),
    path("reports/<slug:token>/revoke/", reports.revoke, name="revoke_report"),
    path("r/<slug:token>/report.<slug:suffix>", reports.file, name="report_file"),
    path("r/<slug:token>/", share.shared, name="shared"),
    re_path(r"^r/(?P<token>[\w-]+)/graph/(?P<node>[a-z0-9.\-]{1,60})/$", graph.of_link, name="link_graph"),
    re_path(
        r"^r/(?P<token>[\w-]+)/fabric\.(?P<suffix>graphml|dot)$", graph.file_of_link, name="link_graph_file"
    ),
    path("r/<slug:token>/revoke/", edit.revoke, name="revoke"),
    path("accounts/login/", accounts.log_in, name="login"),
    path("accounts/logout/", LogoutView.as_view(), name="logout"),
    path("accounts/signup/", accounts.sign_up, name="signup"),
    path("help/", pages.help_page, name="help"),
    path("methods/", pages.methods, name="methods"),
    path("methods/aiconfigurator/", pages.aiconfigurator, name="aiconfigurator"),
    path("healthz", pages.healthz, name="healthz"),
    path("i18n/", include("django.conf.urls.i18n")),
    path("admin/", admin.site.urls),
]
