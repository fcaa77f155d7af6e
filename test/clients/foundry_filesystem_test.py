"""Spaces, projects, folders, resources, roles, markings and trash through the vendor's library."""

import uuid

import foundry_sdk
import pytest
from foundry_sdk.v2.admin import errors as admin_errors
from foundry_sdk.v2.datasets import errors as dataset_errors
from foundry_sdk.v2.filesystem import errors

from foundry_server import foundry  # noqa: F401: a fixture

OWNER, EDITOR, VIEWER, DISCOVERER = (
    "compass:manage", "compass:edit", "compass:view", "compass:discover")
ROOT = "ri.compass.main.folder.0"


@pytest.fixture
def filesystem(foundry):
    return foundry.client.filesystem


@pytest.fixture
def me(foundry):
    return foundry.client.admin.User.get_current()


@pytest.fixture
def space(filesystem):
    return next(iter(filesystem.Space.list()))


@pytest.fixture
def project(filesystem, space, me):
    return make_project(filesystem, space, me)


def make_project(filesystem, space, owner, name=None, **options):
    return filesystem.Project.create(
        display_name=name or f"project {uuid.uuid4()}", space_rid=space.rid,
        role_grants={OWNER: [{"principalId": owner.id, "principalType": "USER"}]},
        **{"default_roles": [], "organization_rids": [], **options})


def make_folder(filesystem, parent, name=None):
    return filesystem.Folder.create(
        display_name=name or f"folder {uuid.uuid4()}", parent_folder_rid=parent)


def grant(foundry, rid, user, role):
    foundry.client.filesystem.Resource.Role.add(rid, roles=[
        {"roleId": role, "resourceRolePrincipal": {"type": "principalIdOnly",
                                                   "principalId": user}}])


def test_spaces(foundry, filesystem, space):
    assert (space.display_name, space.path) == ("Default", "/Default")
    assert len(space.organizations) == 1
    assert filesystem.Space.get(space.rid, preview=True) == space
    enrollment = foundry.client.admin.Enrollment.get_current(preview=True)
    made = filesystem.Space.create(
        enrollment_rid=enrollment.rid, display_name="Ü space", description="about",
        organizations=space.organizations, deletion_policy_organizations=space.organizations,
        preview=True)
    assert (made.path, made.description) == ("/Ü space", "about")
    assert {one.rid for one in filesystem.Space.list(page_size=1)} == {space.rid, made.rid}
    renamed = filesystem.Space.replace(made.rid, display_name="Other", preview=True)
    assert (renamed.path, renamed.description) == ("/Other", None)
    with pytest.raises(errors.SpaceNameInvalid):
        filesystem.Space.replace(made.rid, display_name="Default", preview=True)
    with pytest.raises(errors.SpaceNotEmpty):
        filesystem.Space.delete(space.rid, preview=True)
    assert filesystem.Space.delete(made.rid, preview=True) is None
    with pytest.raises(errors.SpaceNotFound):
        filesystem.Space.get(made.rid, preview=True)
    with pytest.raises(errors.EnrollmentNotFound):
        filesystem.Space.create(
            enrollment_rid="ri.control-panel.main.customer.x", display_name="x", organizations=[],
            deletion_policy_organizations=[], preview=True)


def test_projects(foundry, filesystem, space, me):
    project = make_project(filesystem, space, me, "p 1", description="d")
    assert project.path == "/Default/p 1" and project.space_rid == space.rid
    assert project.trash_status == "NOT_TRASHED" and project.resource_level_role_grants_allowed
    assert filesystem.Project.get(project.rid) == project
    folder = filesystem.Folder.get(project.rid)
    assert (folder.type, folder.project_rid) == ("PROJECT", project.rid)
    assert filesystem.Resource.get(project.rid).project_rid == project.rid
    with pytest.raises(errors.ProjectNameAlreadyExists) as taken:
        make_project(filesystem, space, me, "p 1")
    assert taken.value.parameters["spaceRid"] == space.rid
    with pytest.raises(errors.CreateProjectNoOwnerLikeRoleGrant) as ownerless:
        filesystem.Project.create(display_name="x", space_rid=space.rid, role_grants={},
                                  default_roles=[], organization_rids=[])
    assert ownerless.value.parameters["roleSetOwnerLikeRoleIds"] == [OWNER]
    with pytest.raises(errors.InvalidRoleIds) as unknown:
        make_project(filesystem, space, me, default_roles=["compass:rule"])
    assert unknown.value.parameters["requestedRoleIds"] == ["compass:rule"]
    with pytest.raises(errors.OrganizationsNotFound):
        make_project(filesystem, space, me,
                     organization_rids=[f"ri.multipass..organization.{uuid.uuid4()}"])
    with pytest.raises(errors.InvalidDisplayName):
        make_project(filesystem, space, me, "a/b")
    renamed = filesystem.Project.replace(project.rid, display_name="p 2", preview=True)
    assert (renamed.path, renamed.description) == ("/Default/p 2", None)
    assert list(filesystem.Project.organizations(project.rid)) == space.organizations
    with pytest.raises(errors.OrganizationCannotBeRemoved):
        filesystem.Project.remove_organizations(
            project.rid, organization_rids=space.organizations)
    with pytest.raises(errors.ProjectTemplateNotFound):
        filesystem.Project.create_from_template(
            template_rid="ri.templates.main.template.x", variable_values={})


def test_organizations_of_a_project(foundry, filesystem, space, me):
    enrollment = foundry.client.admin.Enrollment.get_current(preview=True)
    second = foundry.client.admin.Organization.create(
        administrators=[me.id], enrollment_rid=enrollment.rid, name=f"o {uuid.uuid4()}",
        preview=True)
    project = make_project(filesystem, space, me)
    with pytest.raises(errors.OrganizationMarkingNotOnSpace):
        make_project(filesystem, space, me, organization_rids=[second.rid])
    filesystem.Project.add_organizations(project.rid, organization_rids=[second.rid])
    assert set(filesystem.Project.organizations(project.rid, page_size=1)) == {
        second.rid, *space.organizations}
    filesystem.Project.remove_organizations(project.rid, organization_rids=[second.rid])
    assert list(filesystem.Project.organizations(project.rid)) == space.organizations


def test_references_of_a_project(filesystem, space, me, project):
    other = make_project(filesystem, space, me)
    folder = make_folder(filesystem, other.rid, "shared")
    references = filesystem.Project.Reference
    references.add(project.rid, resources=[
        {"type": "filesystem", "resourceRid": folder.rid},
        {"type": "external", "resourceRid": "ri.other.main.thing.1", "importName": "far"}])
    found = {one.reference.name: one.reference.type for one in references.list(project.rid)}
    assert found == {"shared": "filesystem", "far": "external"}
    assert len(list(references.list(project.rid, reference_type="EXTERNAL"))) == 1
    own = make_folder(filesystem, project.rid)
    with pytest.raises(errors.InvalidResourceReference):
        references.add(project.rid, resources=[{"type": "filesystem", "resourceRid": own.rid}])
    references.remove(project.rid, resources=[folder.rid])
    assert [one.reference.name for one in references.list(project.rid)] == ["far"]


def test_folders(foundry, filesystem, project):
    outer = make_folder(filesystem, project.rid, "outer é")
    inner = make_folder(filesystem, outer.rid, "inner")
    assert inner.path == project.path + "/outer é/inner"
    assert (inner.type, inner.parent_folder_rid, inner.project_rid) == (
        "FOLDER", outer.rid, project.rid)
    assert filesystem.Folder.get(inner.rid) == inner
    dataset = foundry.make_dataset("data", inner.rid)
    children = list(filesystem.Folder.children(inner.rid))
    assert [(c.rid, c.type, c.path) for c in children] == [
        (dataset.rid, "FOUNDRY_DATASET", inner.path + "/data")]
    assert children[0] == filesystem.Resource.get(dataset.rid)
    for i in range(5):
        make_folder(filesystem, outer.rid, f"f{i}")
    assert [c.display_name for c in filesystem.Folder.children(outer.rid, page_size=2)] == [
        "f0", "f1", "f2", "f3", "f4", "inner"]
    with pytest.raises(errors.ResourceNameAlreadyExists) as taken:
        make_folder(filesystem, outer.rid, "inner")
    assert taken.value.parameters["parentFolderRid"] == outer.rid
    with pytest.raises(errors.MissingDisplayName):
        filesystem.Folder.create(display_name="", parent_folder_rid=outer.rid)
    for name in (".", "..", "a/b", "x" * 701):
        with pytest.raises(errors.InvalidDisplayName):
            make_folder(filesystem, outer.rid, name)
    with pytest.raises(errors.InvalidFolder):
        make_folder(filesystem, dataset.rid)
    with pytest.raises(errors.InvalidFolder):
        filesystem.Folder.get(dataset.rid)
    with pytest.raises(errors.CreateFolderOutsideProjectNotSupported):
        make_folder(filesystem, project.space_rid)
    with pytest.raises(errors.GetRootFolderNotSupported):
        filesystem.Folder.get(ROOT)
    nothing = f"ri.compass.main.folder.{uuid.uuid4()}"
    with pytest.raises(errors.FolderNotFound):
        filesystem.Folder.get(nothing)
    batch = filesystem.Folder.get_batch([{"folderRid": rid} for rid in (
        inner.rid, nothing, dataset.rid, ROOT)])
    assert list(batch.data) == [inner.rid]


def test_moving_a_folder(filesystem, space, me, project):
    outer = make_folder(filesystem, project.rid, "outer")
    inner = make_folder(filesystem, outer.rid, "inner")
    with pytest.raises(errors.CircularDependency):
        filesystem.Folder.replace(outer.rid, display_name="outer", parent_folder_rid=inner.rid,
                                  preview=True)
    other = make_project(filesystem, space, me)
    moved = filesystem.Folder.replace(inner.rid, display_name="moved", parent_folder_rid=other.rid,
                                      preview=True)
    assert moved.path == other.path + "/moved" and moved.project_rid == other.rid
    with pytest.raises(errors.InvalidParentFolder):
        filesystem.Folder.replace(inner.rid, display_name="x", parent_folder_rid=space.rid,
                                  preview=True)


def test_resources_by_path(foundry, filesystem, project):
    dataset = foundry.make_dataset("data é", project.rid)
    for path in (project.path + "/data é", project.path[1:] + "/data é"):
        assert filesystem.Resource.get_by_path(path=path).rid == dataset.rid
    with pytest.raises(errors.PathNotFound):
        filesystem.Resource.get_by_path(path=project.path + "/none")
    with pytest.raises(errors.InvalidPath):
        filesystem.Resource.get_by_path(path=project.path + "//data é")
    with pytest.raises(errors.GetSpaceResourceNotSupported):
        filesystem.Resource.get_by_path(path="/Default")
    with pytest.raises(errors.GetSpaceResourceNotSupported):
        filesystem.Resource.get(project.space_rid)
    with pytest.raises(errors.GetRootFolderNotSupported):
        filesystem.Resource.get(ROOT)
    batch = filesystem.Resource.get_by_path_batch([
        {"path": project.path + "/data é"}, {"path": "/none"}, {"path": "//"}])
    assert [one.rid for one in batch.data] == [dataset.rid]
    nothing = f"ri.foundry.main.dataset.{uuid.uuid4()}"
    found = filesystem.Resource.get_batch([{"resourceRid": dataset.rid}, {"resourceRid": nothing}])
    assert list(found.data) == [dataset.rid]
    filesystem.Resource.get(dataset.rid)
    viewed = filesystem.Resource.get_recently_viewed(preview=True)
    assert viewed.data[0].resource.rid == dataset.rid


def test_batches_have_limits(foundry):
    for path, limit in (("/api/v2/filesystem/folders/getBatch", 1000),
                        ("/api/v2/filesystem/resources/getBatch", 1000),
                        ("/api/v2/admin/users/getBatch", 500)):
        assert foundry.native("POST", path, json=[]).json()["errorName"] == "MissingBatchRequest"
        too_many = foundry.native("POST", path, json=[{}] * (limit + 1)).json()
        assert too_many["errorName"] == "BatchRequestSizeExceededLimit"
        assert too_many["parameters"]["maximumBatchSize"] == limit


def test_trash(foundry, filesystem, project):
    outer = make_folder(filesystem, project.rid, "outer")
    dataset = foundry.make_dataset("data", outer.rid)
    resources = filesystem.Resource
    with pytest.raises(errors.ResourceNotTrashed):
        resources.permanently_delete(dataset.rid)
    assert resources.restore(dataset.rid) is None
    assert resources.delete(outer.rid) is None
    assert resources.get(outer.rid).trash_status == "DIRECTLY_TRASHED"
    assert resources.get(dataset.rid).trash_status == "ANCESTOR_TRASHED"
    with pytest.raises(errors.PathNotFound):
        resources.get_by_path(path=project.path + "/outer/data")
    assert list(filesystem.Folder.children(project.rid)) == []
    with pytest.raises(errors.ResourceNotDirectlyTrashed):
        resources.restore(dataset.rid)
    again = make_folder(filesystem, project.rid, "outer")
    with pytest.raises(foundry_sdk.ConflictError) as taken:  # restore declares no such error
        resources.restore(outer.rid)
    assert taken.value.name == "ResourceNameAlreadyExists"
    resources.delete(again.rid)
    resources.restore(outer.rid)
    assert resources.get(dataset.rid).trash_status == "NOT_TRASHED"
    resources.delete(outer.rid)
    assert resources.permanently_delete(outer.rid) is None
    for call in (lambda: resources.get(dataset.rid), lambda: resources.get(outer.rid)):
        with pytest.raises(errors.ResourceNotFound):
            call()
    with pytest.raises(dataset_errors.DatasetNotFound):
        foundry.client.datasets.Dataset.get(dataset.rid)
    with pytest.raises(errors.TrashingSpaceNotSupported):
        resources.delete(project.space_rid)


def test_markings_are_labels(foundry, filesystem, project):
    folder = make_folder(filesystem, project.rid)
    resources = filesystem.Resource
    mark, other = str(uuid.uuid4()), str(uuid.uuid4())
    assert resources.add_markings(project.rid, marking_ids=[mark]) is None
    resources.add_markings(folder.rid, marking_ids=[other, mark])
    resources.remove_markings(folder.rid, marking_ids=[mark])
    assert list(resources.markings(folder.rid)) == [other]
    needed = resources.get_access_requirements(folder.rid)
    assert {(m.marking_id, m.is_directly_applied) for m in needed.markings} == {
        (other, True), (mark, False)}
    organization = foundry.client.admin.Organization.get(needed.organizations[0].organization_rid)
    assert organization.marking_id == needed.organizations[0].marking_id
    with pytest.raises(errors.OrganizationMarkingNotSupported):
        resources.add_markings(folder.rid, marking_ids=[organization.marking_id])
    with pytest.raises(errors.MarkingNotFound):
        resources.add_markings(folder.rid, marking_ids=[""])


def test_roles_reach_down_the_tree(foundry, filesystem, space, project):
    folder = make_folder(filesystem, project.rid)
    dataset = foundry.make_dataset("data", folder.rid)
    user, client, _ = foundry.make_user()
    for place in (space.rid, project.rid, folder.rid, dataset.rid):
        with pytest.raises(dataset_errors.DatasetNotFound):
            client.datasets.Dataset.get(dataset.rid)
        grant(foundry, place, user, VIEWER)
        assert client.datasets.Dataset.get(dataset.rid).rid == dataset.rid
        assert list(client.datasets.Dataset.File.list(dataset.rid)) == []
        with pytest.raises(foundry_sdk.PermissionDeniedError):
            client.datasets.Dataset.File.upload(dataset.rid, "a", b"")
        filesystem.Resource.Role.remove(place, roles=[
            {"roleId": VIEWER,
             "resourceRolePrincipal": {"type": "principalIdOnly", "principalId": user}}])
    with pytest.raises(dataset_errors.DatasetNotFound):
        client.datasets.Dataset.get(dataset.rid)


def test_what_each_role_may_do(foundry, filesystem, project):
    folder = make_folder(filesystem, project.rid)
    dataset = foundry.make_dataset("data", folder.rid)
    foundry.client.datasets.Dataset.File.upload(dataset.rid, "a", b"1")
    users = {}
    for role in (DISCOVERER, VIEWER, EDITOR, OWNER):
        user, client, _ = foundry.make_user()
        grant(foundry, folder.rid, user, role)
        users[role] = client
    for role, client in users.items():
        assert client.datasets.Dataset.get(dataset.rid).name == "data"
        assert client.filesystem.Resource.get(dataset.rid).display_name == "data"
    with pytest.raises(dataset_errors.GetFileContentPermissionDenied):
        users[DISCOVERER].datasets.Dataset.File.content(dataset.rid, "a")
    assert users[VIEWER].datasets.Dataset.File.content(dataset.rid, "a") == b"1"
    with pytest.raises(dataset_errors.UploadFilePermissionDenied):
        users[VIEWER].datasets.Dataset.File.upload(dataset.rid, "b", b"")
    with pytest.raises(errors.DeleteResourcePermissionDenied):
        users[VIEWER].filesystem.Resource.delete(dataset.rid)
    with pytest.raises(errors.CreateFolderPermissionDenied):
        make_folder(users[VIEWER].filesystem, folder.rid)
    users[EDITOR].datasets.Dataset.File.upload(dataset.rid, "b", b"")
    users[EDITOR].filesystem.Resource.delete(dataset.rid)
    users[EDITOR].filesystem.Resource.restore(dataset.rid)
    someone, _, _ = foundry.make_user()
    roles = [{"roleId": VIEWER, "resourceRolePrincipal": {"type": "principalIdOnly",
                                                          "principalId": someone}}]
    with pytest.raises(errors.AddResourceRolesPermissionDenied):
        users[EDITOR].filesystem.Resource.Role.add(dataset.rid, roles=roles)
    users[OWNER].filesystem.Resource.Role.add(dataset.rid, roles=roles)
    with pytest.raises(errors.PermanentlyDeleteResourcePermissionDenied):
        users[EDITOR].filesystem.Resource.permanently_delete(dataset.rid)


def test_roles_are_listed(foundry, filesystem, space, me, project):
    folder = make_folder(filesystem, project.rid)
    user, _, _ = foundry.make_user()
    grant(foundry, folder.rid, user, EDITOR)
    filesystem.Resource.Role.add(folder.rid, roles=[
        {"roleId": DISCOVERER, "resourceRolePrincipal": {"type": "everyone"}}])
    own = list(filesystem.Resource.Role.list(folder.rid, page_size=1))
    assert {(r.resource_role_principal.type, r.role_id) for r in own} == {
        ("principalWithId", EDITOR), ("everyone", DISCOVERER)}
    every = list(filesystem.Resource.Role.list(folder.rid, include_inherited=True))
    assert me.id in {r.resource_role_principal.principal_id for r in every
                     if r.resource_role_principal.type == "principalWithId"}
    with pytest.raises(errors.InvalidRoleIds):
        grant(foundry, folder.rid, user, "compass:rule")
    with pytest.raises(admin_errors.PrincipalNotFound):
        grant(foundry, folder.rid, str(uuid.uuid4()), VIEWER)
    _, stranger, _ = foundry.make_user("everyone")
    assert stranger.filesystem.Folder.get(folder.rid).rid == folder.rid
    closed = make_project(filesystem, space, me, resource_level_role_grants_allowed=False)
    below = make_folder(filesystem, closed.rid)
    with pytest.raises(errors.AddResourceRolesPermissionDenied):
        grant(foundry, below.rid, user, VIEWER)
    grant(foundry, closed.rid, user, VIEWER)


def test_a_stranger_sees_no_place(foundry, filesystem, space, project):
    folder = make_folder(filesystem, project.rid)
    _, stranger, _ = foundry.make_user()
    assert list(stranger.filesystem.Space.list()) == []
    with pytest.raises(errors.ProjectNotFound):
        stranger.filesystem.Project.get(project.rid)
    with pytest.raises(errors.FolderNotFound):
        stranger.filesystem.Folder.get(folder.rid)
    with pytest.raises(errors.FolderNotFound):
        list(stranger.filesystem.Folder.children(folder.rid))
    with pytest.raises(errors.ResourceNotFound):
        stranger.filesystem.Resource.get(folder.rid)
    with pytest.raises(errors.PathNotFound):
        stranger.filesystem.Resource.get_by_path(path=folder.path)
    with pytest.raises(errors.ResourceNotFound):
        stranger.filesystem.Resource.delete(folder.rid)
    with pytest.raises(errors.SpaceNotFound):
        make_project(stranger.filesystem, space, stranger.admin.User.get_current())
    with pytest.raises(errors.FolderNotFound):
        make_folder(stranger.filesystem, folder.rid)
    assert stranger.filesystem.Folder.get_batch([{"folderRid": folder.rid}]).data == {}
