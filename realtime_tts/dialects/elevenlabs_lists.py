"""ElevenLabs' lists: voices and models, at paths that other APIs have, too.

Who asks decides (`is_client`): without a header of ElevenLabs' clients, a request passes on to the
routes behind these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Scope

from realtime_tts.dialects import elevenlabs_answer as answer
from realtime_tts.dialects.catalogue import model_names, own_voice
from realtime_tts.dialects.elevenlabs_answer import is_client
from realtime_tts.dialects.refusals import not_ready
from realtime_tts.server.front import Front

_PAGE, _LONGEST_PAGE = 10, 100


def list_routes(front: Front, voices_2_path: str) -> list[BaseRoute]:
    """The routes of the lists."""
    lists = Lists(front)
    return [
        _OwnClients("/v1/voices", lists.endpoint(lists.voices), methods=["GET"]),
        _OwnClients("/v1/voices/{id}", lists.endpoint(lists.voice), methods=["GET"]),
        _OwnClients("/v1/models", lists.endpoint(lists.models), methods=["GET"]),
        Route(voices_2_path, lists.endpoint(lists.page), methods=["GET"]),
    ]


class _OwnClients(Route):
    """A route for the clients of this API alone."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, found = super().matches(scope)
        if match is not Match.FULL or not is_client(scope):
            return Match.NONE, {}
        return match, found


class Lists:
    """The lists of one server."""

    def __init__(self, front: Front) -> None:
        self._front = front

    def endpoint(self, what: Callable[[Request], Response]) -> Callable[[Request], Any]:
        """`what`, or 503 while it is not known what there is."""

        async def answered(request: Request) -> Response:
            failure = not_ready(self._front)
            return what(request) if failure is None else answer.http_error(failure, "")

        return answered

    def voices(self, request: Request) -> Response:
        """All of them."""
        return JSONResponse({"voices": [self._voice(name) for name in self._names()]})

    def voice(self, request: Request) -> Response:
        """One of them, by its id in any case."""
        asked = request.path_params["id"]
        found = own_voice(self._names(), asked)
        if found is None:
            message = f"there is no voice {asked[:40]!r}; GET /v1/voices lists those there are"
            return JSONResponse(answer.detail("voice_not_found", message), 404)
        return JSONResponse(self._voice(found))

    def page(self, request: Request) -> Response:
        """Some of them: the second version of the list."""
        query, names = request.query_params, self._names()
        if query.get("search"):
            names = [name for name in names if query["search"].lower() in name.lower()]
        if asked := query.getlist("voice_ids"):
            names = [name for name in names if name in asked]
        total, after = len(names), query.get("next_page_token")
        if after in names:
            names = names[names.index(after) + 1 :]
        size = query.get("page_size", "")
        most = min(_LONGEST_PAGE, max(1, int(size[:9]))) if _is_number(size) else _PAGE
        page, has_more = names[:most], len(names) > most
        return JSONResponse(
            {
                "voices": [self._voice(name) for name in page],
                "has_more": has_more,
                "total_count": total,
                "next_page_token": page[-1] if has_more else None,
            }
        )

    def models(self, request: Request) -> Response:
        """The loaded checkpoints."""
        return JSONResponse([self._model(name) for name in model_names(self._front.info)])

    def _names(self) -> list[str]:
        return list(self._front.voice_names())

    def _voice(self, name: str) -> dict[str, Any]:
        built_in = name in self._front.info.voices
        return {
            "voice_id": name, "name": name, "category": "premade" if built_in else "cloned",
            "labels": {}, "description": None, "preview_url": None, "settings": None,
            "available_for_tiers": [], "high_quality_base_model_ids": [],
        }  # fmt: skip

    def _model(self, name: str) -> dict[str, Any]:
        info = self._front.info
        most = self._front.limits.max_text_chars
        return {
            "model_id": name, "name": name, "description": "", "can_do_text_to_speech": True,
            "can_be_finetuned": False, "can_do_voice_conversion": False, "can_use_style": False,
            "can_use_speaker_boost": False, "serves_pro_voices": False, "token_cost_factor": 1.0,
            "requires_alpha_access": False, "maximum_text_length_per_request": most,
            "max_characters_request_free_user": most,
            "max_characters_request_subscribed_user": most,
            "languages": [{"language_id": each, "name": each} for each in info.languages],
        }  # fmt: skip


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
