"""Sign-up and log-in; what was made before becomes the user's.

`registration/login.html` and `registration/signup.html`: `form`, `next`.
"""

from django.contrib.auth import login
from django.contrib.auth.forms import UserCreationForm
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods

from explorer.access import SANDBOX
from explorer.actions import adopt_sandbox
from explorer.views.common import limited


class LogIn(LoginView):
    """Django's own, which keeps the session's sandbox for adoption."""

    redirect_authenticated_user = True

    def form_valid(self, form: object) -> HttpResponse:
        response = super().form_valid(form)  # type: ignore[arg-type]  # LoginView only hands it AuthenticationForm
        _adopt(self.request)
        return response


log_in = limited("login", per_minute=20)(LogIn.as_view())


@require_http_methods(["GET", "POST"])
@limited("login", per_minute=20)
def sign_up(request: HttpRequest) -> HttpResponse:
    form: UserCreationForm[User] = UserCreationForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        login(request, form.save())
        _adopt(request)
        return redirect(_next(request))
    context = {"form": form, "next": request.POST.get("next") or request.GET.get("next", "")}
    return render(request, "registration/signup.html", context, status=422 if form.errors else 200)


def _adopt(request: HttpRequest) -> None:
    if isinstance(request.user, User):
        adopt_sandbox(request.user, request.session.pop(SANDBOX, ""))


def _next(request: HttpRequest) -> str:
    """Where the person was going, if that is on this site."""
    wanted = request.POST.get("next", "")
    safe = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if safe else "/"
