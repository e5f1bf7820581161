"""Publishing to the Hugging Face hub: one commit or pull request, or the old revision stays unchanged."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub import hub
from mrs_suggest.common.hub.publication import Publication

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

    Operation = CommitOperationAdd | CommitOperationDelete

TAG = re.compile(r"[A-Za-z0-9][\w.+-]{0,99}", re.ASCII)


@dataclass(frozen=True)
class Change:
    """How a publication is committed to its repository.

    Attributes:
        message: the commit message; lines after the first are its description.
        private: visibility of a new repository. An existing one keeps its own, so True is refused if it is
            public.
        create_pr: open a pull request; main does not change.
        tag: a name for the commit, for `--revision` and `ORG/NAME@TAG`.

    Raises:
        InputError: the message is empty, the tag is not a valid name, or a tag was given with a pull request.
    """

    message: str
    private: bool | None = None
    create_pr: bool = False
    tag: str | None = None

    def __post_init__(self) -> None:
        if not self.title:
            raise InputError("--commit-message: is empty; say what the commit changes.")
        if self.tag is not None and (not TAG.fullmatch(self.tag) or ".." in self.tag or self.tag.endswith(".lock")):
            raise InputError(f"--tag {self.tag!r}: not a valid tag name; pass one such as v1.0.")
        if self.tag is not None and self.create_pr:
            raise InputError("--tag: not possible with a pull request; tag the commit when it is merged.")

    @property
    def title(self) -> str:
        return self.message.strip().partition("\n")[0].strip()

    @property
    def description(self) -> str:
        return self.message.strip().partition("\n")[2].strip()


@dataclass(frozen=True)
class Published:
    """A commit that the hub accepted, and the address of its pull request if there is one."""

    commit: str
    pull_request: str | None = None


def publish(publication: Publication, change: Change, token: str | None = None) -> Published:
    """Make the repository hold the publication's files and no others, in one commit or one pull request.

    Args:
        token: default: the one that the hub's client finds.

    Raises:
        InputError: no token, no permission, no hub, not the repository that was meant, or another commit was published
            meanwhile; the sentence says what to do. The earlier revision stays intact.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

    hub.require_repo_id(publication.repo_id)
    files = publication.files()
    if not files:
        raise InputError(f"{publication.folder}: nothing to publish there.")
    api = HfApi(token=token)
    name, kind = publication.repo_id, publication.kind
    if not change.create_pr:  # which needs a repository, but no permission to write to it
        sdk = publication.space_sdk
        hub.asked(
            publication,
            lambda: api.create_repo(name, repo_type=kind, private=change.private, exist_ok=True, space_sdk=sdk),
        )
    found = hub.asked(publication, lambda: api.repo_info(name, repo_type=kind))
    head = str(found.sha)
    if change.private and found.private is False:
        raise InputError(
            f"{name}: exists and is public, and --private hides new repositories only; make it private in its settings "
            "on the hub, or choose another name."
        )
    there = hub.asked(publication, lambda: api.list_repo_files(name, repo_type=kind, revision=head))
    foreign = set(there) - {".gitattributes", "README.md"}
    if foreign and not foreign & set(files):
        raise InputError(
            f"{name}: holds other files ({min(foreign)!r} among them), which publishing would remove; choose another "
            "repository, or empty that one."
        )
    tagged = _tagged(api, publication, change.tag)
    if tagged not in (None, head):
        raise InputError(f"{name}: the tag {change.tag} names revision {str(tagged)[:12]} already; choose another one.")
    gone = sorted(set(there) - set(files) - {".gitattributes"})
    operations: list[CommitOperationAdd | CommitOperationDelete] = [
        *(
            CommitOperationAdd(path, content if isinstance(content, bytes) else str(content))
            for path, content in files.items()
        ),
        *(CommitOperationDelete(path) for path in gone),
    ]
    published = _committed(api, publication, change, operations, head)
    if change.tag:
        _tag(api, publication, change.tag, tagged, published.commit)
    return published


def _committed(
    api: HfApi, publication: Publication, change: Change, operations: list[Operation], head: str
) -> Published:
    """Commit on top of `head`; if the hub's answer is lost, look for the commit before making it again."""
    from huggingface_hub.errors import HfHubHTTPError

    before = _tips(api, publication, head, change)
    for attempt in range(1, hub.TRIES + 1):
        try:
            info = api.create_commit(
                publication.repo_id,
                operations,
                repo_type=publication.kind,
                commit_message=change.title,
                commit_description=change.description,
                create_pr=change.create_pr,
                parent_commit=head,
            )
            return Published(str(info.oid), info.pr_url)
        except Exception as error:
            stale = isinstance(error, HfHubHTTPError) and error.response.status_code == 412  # by our own, perhaps
            if not stale:
                hub.raise_unless_passing(error, publication)
            landed = _landed(api, publication, change, head, before, error)
            if landed:
                return landed
            if stale:
                raise InputError(_overtaken(publication, head)) from None
            if attempt == hub.TRIES:
                raise InputError(
                    f"{publication.repo_id}: the push was cut off ({hub.why(error)}); revision {head[:12]} is as "
                    "it was. Run the same command again: what was uploaded is not sent twice."
                ) from None
            time.sleep(hub.SECONDS_BETWEEN_TRIES * attempt)
    raise AssertionError("unreachable")


def _tagged(api: HfApi, publication: Publication, tag: str | None) -> str | None:
    """The commit that a tag points to already."""
    if tag is None:
        return None
    refs = hub.asked(publication, lambda: api.list_repo_refs(publication.repo_id, repo_type=publication.kind))
    return next((str(ref.target_commit) for ref in refs.tags if ref.name == tag), None)


def _tag(api: HfApi, publication: Publication, tag: str, tagged: str | None, commit: str) -> None:
    name = publication.repo_id
    if tagged == commit:
        return
    if tagged is not None:
        raise InputError(
            f"{name}: published at {commit[:12]}, but the tag {tag} names revision {tagged[:12]}; choose another one."
        )
    try:
        # `exist_ok`: the answer to an earlier try may have been lost
        hub.asked(
            publication,
            lambda: api.create_tag(name, tag=tag, revision=commit, repo_type=publication.kind, exist_ok=True),
            doing="tag",
        )
    except InputError as error:
        raise InputError(
            f"{error} The files are published at {commit[:12]}; the same command sends nothing twice, and tags."
        ) from None


def _tips(api: HfApi, publication: Publication, head: str, change: Change) -> dict[str, str]:
    """Places of our commit, main or any open pull request: name -> its newest commit."""
    name, kind = publication.repo_id, publication.kind
    if not change.create_pr:
        return {"main": head}
    refs = hub.asked(publication, lambda: api.list_repo_refs(name, repo_type=kind, include_pull_requests=True))
    return {ref.ref: str(ref.target_commit) for ref in refs.pull_requests or ()}


def _landed(
    api: HfApi, publication: Publication, change: Change, head: str, before: dict[str, str], error: Exception
) -> Published | None:
    """Our commit, if it took effect although the hub's answer was lost; an InputError if that cannot be known."""
    name, kind = publication.repo_id, publication.kind
    try:
        if change.create_pr:
            now = _tips(api, publication, head, change)
        else:
            now = {"main": str(hub.asked(publication, lambda: api.repo_info(name, repo_type=kind).sha))}
        new = {ref: tip for ref, tip in now.items() if before.get(ref) != tip}
        for ref, tip in new.items():
            if hub.asked(publication, lambda tip=tip: _holds(api, publication, tip, change.title)):  # type: ignore[misc]
                return Published(tip, _discussion(api, publication, ref) if change.create_pr else None)
    except InputError:
        either = f"the repository is either at revision {head[:12]} or at the new one, intact"
        if change.create_pr:
            either = "check first whether the pull request exists"
        raise InputError(
            f"{publication.repo_id}: the push was cut off ({hub.why(error)}) and the hub does not say whether it "
            f"took effect; {either}. Run the same command again when the hub answers."
        ) from None
    if new and not change.create_pr:
        raise InputError(_overtaken(publication, now["main"], "now at")) from None
    return None


def _discussion(api: HfApi, publication: Publication, ref: str) -> str:
    prefix = "" if publication.kind == "model" else f"{publication.kind}s/"
    return f"{api.endpoint}/{prefix}{publication.repo_id}/discussions/{ref.rpartition('/')[2]}"


def _overtaken(publication: Publication, revision: str, where: str = "you started from") -> str:
    return (
        f"{publication.repo_id}: another commit was published meanwhile ({where} {revision[:12]}); look at that "
        "revision, then run the same command again."
    )


def _holds(api: HfApi, publication: Publication, revision: str, expected: str) -> bool:
    """Whether the newest commit is the expected one: its title, and the names and sizes of the files."""
    from huggingface_hub.hf_api import RepoFile

    name, kind = publication.repo_id, publication.kind
    title = api.list_repo_commits(name, repo_type=kind, revision=revision)[0].title
    tree = api.list_repo_tree(name, repo_type=kind, revision=revision, recursive=True)
    sizes = {item.path: item.size for item in tree if isinstance(item, RepoFile) and item.path != ".gitattributes"}
    return title == expected and sizes == publication.sizes()
