"""Users, groups, organizations, roles, tokens and OAuth2 through the vendor's library."""

import datetime
import time
import uuid

import foundry_sdk
import pytest
import requests
from foundry_sdk import Config, ConfidentialClientAuth, FoundryClient
from foundry_sdk.v2.admin import errors
from foundry_sdk.v2.datasets import errors as dataset_errors

from foundry_server import foundry  # noqa: F401: a fixture


@pytest.fixture
def admin(foundry):
    return foundry.client.admin


@pytest.fixture
def organization(admin):
    return admin.User.get_current().organization


def make_group(admin, organization, name=None, **options):
    return admin.Group.create(name=name or f"group {uuid.uuid4()}", organizations=[organization],
                              **{"attributes": {}, **options})


def test_users(foundry, admin, organization):
    me = admin.User.get_current()
    assert (me.username, me.status, me.realm) == ("admin", "ACTIVE", "tarn")
    assert admin.User.get(me.id) == me
    user, client, _ = foundry.make_user("Zoë")
    assert client.admin.User.get_current().id == user
    listed = list(admin.User.list(page_size=1))
    assert {me.id, user} <= {one.id for one in listed}
    assert len(listed) == len({one.id for one in listed})
    found = admin.User.search(where={"type": "queryString", "value": "zoË"[:2]})
    assert user in {one.id for one in found.data}
    batch = admin.User.get_batch([{"userId": me.id}, {"userId": str(uuid.uuid4())}])
    assert list(batch.data) == [me.id]
    assert admin.User.profile_picture(me.id) is None
    markings = admin.User.get_markings(me.id)
    assert markings.view == [admin.Organization.get(organization).marking_id]
    with pytest.raises(errors.UserNotFound):
        admin.User.get(str(uuid.uuid4()))


def test_search_pages_travel_in_the_body(foundry, admin):
    made = {foundry.make_user("paging")[0] for _ in range(3)}
    where = {"type": "queryString", "value": "PAGING-"}
    found, token = set(), None
    for _ in range(3):
        page = admin.User.search(where=where, page_size=1, page_token=token)
        found |= {one.id for one in page.data}
        token = page.next_page_token
    assert found == made and token is None
    with pytest.raises(foundry_sdk.BadRequestError) as refused:
        admin.User.search(where=where, page_size=0)
    assert refused.value.name == "InvalidPageSize"
    with pytest.raises(foundry_sdk.BadRequestError) as refused:
        admin.User.search(where=where, page_token="nonsense")
    assert refused.value.name == "InvalidPageToken"


def test_deleted_users(foundry, admin):
    user, client, _ = foundry.make_user()
    with pytest.raises(errors.UserIsActive):
        admin.User.get(user, status="DELETED")
    with pytest.raises(errors.DeleteUserPermissionDenied):
        client.admin.User.delete(admin.User.get_current().id)
    assert admin.User.delete(user) is None
    with pytest.raises(foundry_sdk.UnauthorizedError):
        client.admin.User.get_current()
    with pytest.raises(errors.UserDeleted):
        admin.User.get(user)
    assert admin.User.get(user, status="DELETED").status == "DELETED"
    assert user in {one.id for one in admin.User.list(include="DELETED")}
    with pytest.raises(errors.UserDeleted):
        admin.User.delete(user)
    with pytest.raises(errors.DeleteUserPermissionDenied):
        admin.User.delete(admin.User.get_current().id)


def test_groups(foundry, admin, organization):
    group = make_group(admin, organization, "Readers é", description="d",
                       attributes={"a": ["1", "2"]})
    assert (group.name, group.description, group.attributes) == (
        "Readers é", "d", {"a": ["1", "2"]})
    assert group.organizations == [organization]
    assert admin.Group.get(group.id) == group
    assert group in list(admin.Group.list(page_size=1))
    assert admin.Group.search(where={"type": "queryString", "value": "readers"}).data == [group]
    assert list(admin.Group.get_batch([{"groupId": group.id}]).data) == [group.id]
    with pytest.raises(errors.GroupNameAlreadyExists):
        make_group(admin, organization, "Readers é")
    with pytest.raises(errors.InvalidGroupOrganizations):
        admin.Group.create(name="x", organizations=[], attributes={})
    with pytest.raises(errors.OrganizationNotFound):
        make_group(admin, f"ri.multipass..organization.{uuid.uuid4()}")
    renamed = admin.Group.replace(group.id, name="Writers", organizations=[organization],
                                  attributes={})
    assert (renamed.name, renamed.description, renamed.attributes) == ("Writers", None, {})
    _, client, _ = foundry.make_user()
    with pytest.raises(errors.CreateGroupPermissionDenied):
        make_group(client.admin, organization)
    with pytest.raises(errors.DeleteGroupPermissionDenied):
        client.admin.Group.delete(group.id)
    assert admin.Group.delete(group.id) is None
    with pytest.raises(errors.GroupNotFound):
        admin.Group.get(group.id)


def test_members(foundry, admin, organization):
    outer, inner = make_group(admin, organization), make_group(admin, organization)
    user, client, _ = foundry.make_user()
    members = admin.Group.GroupMember
    assert members.add(outer.id, principal_ids=[inner.id]) is None
    members.add(inner.id, principal_ids=[user])
    assert [(m.principal_type, m.principal_id) for m in members.list(outer.id)] == [
        ("GROUP", inner.id)]
    assert {m.principal_id for m in members.list(outer.id, transitive=True)} == {inner.id, user}
    memberships = admin.User.GroupMembership
    assert [m.group_id for m in memberships.list(user)] == [inner.id]
    assert {m.group_id for m in memberships.list(user, transitive=True)} == {inner.id, outer.id}
    assert {g.id for g in client.admin.Group.list_current(preview=True).data} == {
        inner.id, outer.id}
    with pytest.raises(foundry_sdk.BadRequestError):
        members.add(inner.id, principal_ids=[outer.id])
    with pytest.raises(errors.PrincipalNotFound):
        members.add(inner.id, principal_ids=[str(uuid.uuid4())])
    with pytest.raises(errors.ExpirationForTransitiveGroupMembersNotSupported):
        list(members.list(outer.id, transitive=True, include_expirations=True))
    soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    members.add(inner.id, principal_ids=[user], expiration=soon)
    dated = list(members.list(inner.id, include_expirations=True))
    assert abs(dated[0].expiration - soon) < datetime.timedelta(milliseconds=1)
    with pytest.raises(errors.InvalidGroupMembershipExpiration):
        members.add(inner.id, principal_ids=[user],
                    expiration=soon - datetime.timedelta(hours=2))
    with pytest.raises(errors.AddGroupMembersPermissionDenied):
        client.admin.Group.GroupMember.add(inner.id, principal_ids=[user])
    _, stranger, _ = foundry.make_user()
    with pytest.raises(errors.ListGroupMembersPermissionDenied):
        list(stranger.admin.Group.GroupMember.list(inner.id))
    assert members.remove(inner.id, principal_ids=[user]) is None
    assert list(members.list(inner.id)) == []


def test_a_group_has_roles(foundry, admin, organization):
    group = make_group(admin, organization)
    user, client, _ = foundry.make_user()
    dataset = foundry.make_dataset()
    foundry.client.filesystem.Resource.Role.add(dataset.rid, roles=[
        {"roleId": "compass:view",
         "resourceRolePrincipal": {"type": "principalIdOnly", "principalId": group.id}}])
    with pytest.raises(dataset_errors.DatasetNotFound):
        client.datasets.Dataset.get(dataset.rid)
    admin.Group.GroupMember.add(group.id, principal_ids=[user])
    assert client.datasets.Dataset.get(dataset.rid).rid == dataset.rid
    admin.Group.GroupMember.remove(group.id, principal_ids=[user])
    with pytest.raises(dataset_errors.DatasetNotFound):
        client.datasets.Dataset.get(dataset.rid)


def test_organizations_and_roles(foundry, admin, organization):
    enrollment = admin.Enrollment.get_current(preview=True)
    assert admin.Enrollment.get(enrollment.rid, preview=True) == enrollment
    me = admin.User.get_current().id
    made = admin.Organization.create(administrators=[me], enrollment_rid=enrollment.rid,
                                     name="Second", host="second.example.org", preview=True)
    assert admin.Organization.get(made.rid) == made
    with pytest.raises(errors.OrganizationNameAlreadyExists):
        admin.Organization.create(administrators=[me], enrollment_rid=enrollment.rid,
                                  name="Second", preview=True)
    with pytest.raises(errors.CreateOrganizationMissingInitialAdminRole):
        admin.Organization.create(administrators=[], enrollment_rid=enrollment.rid, name="x",
                                  preview=True)
    renamed = admin.Organization.replace(made.rid, name="Renamed", description="d")
    assert (renamed.name, renamed.description, renamed.host) == ("Renamed", "d", None)
    with pytest.raises(errors.InvalidHostName):
        admin.Organization.replace(made.rid, name="Renamed", host="a b")
    with pytest.raises(errors.OrganizationNotFound):
        admin.Organization.get(f"ri.multipass..organization.{uuid.uuid4()}")
    roles = admin.Organization.list_available_roles(organization).data
    assert [role.name for role in roles] == ["Discoverer", "Viewer", "Editor", "Owner"]
    owner = admin.Role.get("compass:manage", preview=True)
    assert (owner.display_name, owner.operations) == ("Owner", roles[-1].operations)
    assert set(admin.Role.get_batch([{"roleId": role.id} for role in roles], preview=True).data
               ) == {role.id for role in roles}
    with pytest.raises(errors.RoleNotFound):
        admin.Role.get("compass:rule", preview=True)
    _, client, _ = foundry.make_user()
    with pytest.raises(errors.ReplaceOrganizationPermissionDenied):
        client.admin.Organization.replace(organization, name="Mine")


def test_tokens_have_scopes_and_an_end(foundry):
    dataset = foundry.make_dataset()
    reading = foundry.client_of(foundry.make_token("admin", scopes="api:datasets-read"))
    assert reading.datasets.Dataset.get(dataset.rid).rid == dataset.rid
    with pytest.raises(foundry_sdk.PermissionDeniedError) as denied:
        reading.datasets.Dataset.File.upload(dataset.rid, "a", b"")
    assert denied.value.name == "ApiUsageDenied"
    assert denied.value.parameters["missingScope"] == "api:datasets-write"
    with pytest.raises(foundry_sdk.PermissionDeniedError):
        reading.admin.User.get_current()
    ending = (datetime.datetime.now(datetime.timezone.utc)
              + datetime.timedelta(seconds=1)).isoformat()
    brief = foundry.client_of(foundry.make_token("admin", expires=ending))
    brief.admin.User.get_current()
    time.sleep(1.1)
    with pytest.raises(foundry_sdk.UnauthorizedError):
        brief.admin.User.get_current()


def test_all_tokens_are_revoked(foundry, admin):
    user, client, _ = foundry.make_user()
    _, other, _ = foundry.make_user()
    with pytest.raises(errors.RevokeAllTokensUserPermissionDenied):
        other.admin.User.revoke_all_tokens(user)
    assert admin.User.revoke_all_tokens(user) is None
    with pytest.raises(foundry_sdk.UnauthorizedError):
        client.admin.User.get_current()
    other.admin.User.revoke_all_tokens(other.admin.User.get_current().id)
    with pytest.raises(foundry_sdk.UnauthorizedError):
        other.admin.User.get_current()


def make_service(foundry):
    answer = foundry.native("POST", "/tarn/v1/users",
                            json={"name": f"service-{uuid.uuid4()}", "kind": "service"})
    assert answer.status_code == 200, answer.text
    return answer.json()


def client_of_service(foundry, service, **options):
    auth = ConfidentialClientAuth(
        client_id=service["id"], client_secret=service["clientSecret"], should_refresh=False,
        **options)
    return FoundryClient(auth=auth, hostname=foundry.host, config=Config(scheme="http")), auth


def test_client_credentials(foundry):
    service = make_service(foundry)
    client, auth = client_of_service(foundry, service)
    assert client.admin.User.get_current().id == service["id"]
    token = auth.get_token()
    assert token.token_type == "bearer" and 3000 < token.expires_in <= 3600
    narrow, _ = client_of_service(foundry, service, scopes=["api:datasets-read"])
    with pytest.raises(foundry_sdk.PermissionDeniedError):
        narrow.admin.User.get_current()
    auth.sign_out()
    stale = foundry.native("GET", "/api/v2/admin/users/getCurrent", token=token.access_token)
    assert stale.status_code == 401
    renewed = foundry.native("POST", f"/tarn/v1/users/{service['id']}:renewSecret").json()
    old, _ = client_of_service(foundry, service)
    with pytest.raises(Exception):  # noqa: B017: the library lets the transport's error through
        old.admin.User.get_current()
    new, _ = client_of_service(foundry, {**service, **renewed})
    assert new.admin.User.get_current().id == service["id"]


def test_what_the_token_endpoint_refuses(foundry):
    service = make_service(foundry)
    url = foundry.server.url + "/multipass/api/oauth2/token"
    right = {"grant_type": "client_credentials", "client_id": service["id"],
             "client_secret": service["clientSecret"]}
    for change, status, error in [
        ({"client_secret": "wrong"}, 401, "invalid_client"),
        ({"client_id": str(uuid.uuid4())}, 401, "invalid_client"),
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
        ({"grant_type": ""}, 400, "invalid_request"),
        ({"scope": "api:everything"}, 400, "invalid_scope"),
    ]:
        refused = requests.post(url, data={**right, **change}, timeout=60)
        assert (refused.status_code, refused.json()["error"]) == (status, error)
        assert {"errorCode", "errorName", "errorInstanceId", "parameters"} <= set(refused.json())
    basic = requests.post(url, data={"grant_type": "client_credentials"},
                          auth=(service["id"], service["clientSecret"]), timeout=60)
    assert basic.status_code == 200 and basic.headers["Cache-Control"] == "no-store"


def test_credentials_that_are_none(foundry):
    for headers in ({}, {"Authorization": "Basic eDp5"}, {"Authorization": "Bearer"},
                    {"Authorization": "Bearer nonsense"}):
        refused = requests.get(foundry.server.url + "/api/v2/admin/users/getCurrent",
                               headers=headers, timeout=60)
        assert refused.status_code == 401
        assert {"errorCode", "errorName", "errorInstanceId", "parameters"} <= set(refused.json())
    unknown = foundry.native("GET", "/api/v2/nothing/here")
    assert unknown.status_code == 404 and unknown.json()["errorCode"] == "NOT_FOUND"
    bad = foundry.native("POST", "/api/v2/datasets", data=b"{", headers={
        "Content-Type": "application/json"})
    assert bad.status_code == 400 and bad.json()["errorCode"] == "INVALID_ARGUMENT"
