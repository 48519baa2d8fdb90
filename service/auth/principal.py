"""The one who asks, as endpoints see it."""

from dataclasses import dataclass

from service.words import Scope


@dataclass(frozen=True, slots=True)
class Principal:
    """A key that opened the door: its id, name and scopes. `admin` implies every other scope."""

    key_id: str
    name: str
    scopes: frozenset[str]

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes or Scope.ADMIN in self.scopes
