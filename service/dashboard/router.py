"""All pages of the dashboard. Include `router`; static files and security headers come with it."""

from fastapi import APIRouter

from service.dashboard.pages import jobs, overview, runs, sign_in, static, task, task_moves, tasks

router = APIRouter(include_in_schema=False)
for _page in (static, sign_in, overview, tasks, task, task_moves, runs, jobs):
    router.include_router(_page.router)
