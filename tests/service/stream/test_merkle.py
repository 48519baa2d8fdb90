import hashlib
import hmac

from hypothesis import given
from hypothesis import strategies as st

from service.stream.merkle import Leaf, root

LEAVES = st.lists(
    st.builds(Leaf, st.text("ab0", min_size=1, max_size=3), st.integers(1, 3), st.just("cd"), st.just("train")),
    unique_by=lambda leaf: leaf[:2],
    max_size=9,
)


def leaf_hash(key: bytes, leaf: Leaf) -> bytes:
    identity = f"{leaf.task_id}\0{leaf.version}".encode()
    salt = hmac.digest(key, b"snapshot:" + identity, "sha256")
    rest = f"\0{leaf.content_hash}\0{leaf.split}\0{leaf.weight}".encode()
    return hashlib.sha256(b"\0" + salt + identity + rest).digest()


def test_the_tree_is_built_as_written() -> None:
    a, b, c = (Leaf(name, 1, "ff", "train") for name in "abc")
    ha, hb, hc = (leaf_hash(b"k", leaf) for leaf in (a, b, c))
    pair = hashlib.sha256(b"\1" + ha + hb).digest()
    assert root(b"k", [c, a, b]) == hashlib.sha256(b"\1" + pair + hc).hexdigest()  # the odd node is carried up
    assert root(b"k", [a]) == ha.hex()
    assert root(b"k", []) == hashlib.sha256(b"").hexdigest()


@given(LEAVES, st.randoms())
def test_the_root_is_of_the_set_and_of_nothing_else(leaves: list[Leaf], dice) -> None:  # type: ignore[no-untyped-def]
    shuffled = list(leaves)
    dice.shuffle(shuffled)
    assert root(b"k", leaves) == root(b"k", shuffled)
    if leaves:
        assert root(b"k", leaves) != root(b"other", leaves)
        assert root(b"k", leaves) != root(b"k", leaves[1:])
        assert root(b"k", leaves) != root(b"k", [leaves[0]._replace(content_hash="ce"), *leaves[1:]])
