// The vendor's TypeScript clients against a server: run by foundry_osdk_test.py, which starts the
// server and gives its address, a token and the folder of the packages in the environment.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const { TARN_URL, TARN_TOKEN, TARN_PROJECT, TARN_NPM_CLIENTS } = process.env;
const require = createRequire(`${TARN_NPM_CLIENTS}/`);
const load = (name) => import(pathToFileURL(require.resolve(name)).href);

const { createPlatformClient } = await load("@osdk/client");
const datasets = await load("@osdk/foundry.datasets");
const filesystem = await load("@osdk/foundry.filesystem");
const admin = await load("@osdk/foundry.admin");
const { Datasets, Branches, Files, Transactions, Views } = datasets;
const { Folders, Projects, Resources, ResourceRoles, Spaces } = filesystem;
const { Users, Groups, GroupMembers } = admin;

const client = createPlatformClient(TARN_URL, async () => TARN_TOKEN);
const unique = (name) => `${name} ${crypto.randomUUID()}`;

/** The error name of a call that must fail. */
async function nameOf(call) {
  try {
    await call();
  } catch (failure) {
    return failure.errorName ?? String(failure);
  }
  return "no failure";
}

const tests = {
  async "datasets, transactions and files"() {
    const dataset = await Datasets.create(client, {
      name: unique("é 😀"), parentFolderRid: TARN_PROJECT });
    assert.equal((await Datasets.get(client, dataset.rid)).name, dataset.name);
    const open = await Transactions.create(client, dataset.rid, { transactionType: "APPEND" });
    const names = ["plain", "a/b c", "a%2Fb", "+&#", "ü!'()*", "content"];
    for (const name of names) {
      const file = await Files.upload(
        client, dataset.rid, name, new Blob([name]), { transactionRid: open.rid });
      assert.equal(file.path, name);
      assert.equal(file.sizeBytes, String(new TextEncoder().encode(name).length));
    }
    assert.equal((await Transactions.commit(client, dataset.rid, open.rid)).status, "COMMITTED");
    const listed = await Files.list(client, dataset.rid, { pageSize: 100 });
    assert.deepEqual(new Set(listed.data.map((file) => file.path)), new Set(names));
    assert.equal(listed.nextPageToken, undefined);
    for (const name of names) {
      const content = await Files.content(client, dataset.rid, name);
      assert.equal(await content.text(), name);
    }
    assert.equal(await Files.deleteFile(client, dataset.rid, "plain"), undefined);
    assert.equal(await nameOf(() => Files.get(client, dataset.rid, "plain")),
                 "FileNotFoundOnBranch");
    const page = await Files.list(client, dataset.rid, { pageSize: 2 });
    assert.equal(page.data.length, 2);
    const next = await Files.list(client, dataset.rid, {
      pageSize: 100, pageToken: page.nextPageToken });
    assert.equal(next.data.length, names.length - 3);
  },

  async "branches"() {
    const dataset = await Datasets.create(client, {
      name: unique("branches"), parentFolderRid: TARN_PROJECT });
    const made = await Branches.create(client, dataset.rid, { name: "feature/a b" });
    assert.deepEqual(made, { name: "feature/a b" });
    assert.equal((await Branches.get(client, dataset.rid, "feature/a b")).name, "feature/a b");
    assert.equal((await Branches.list(client, dataset.rid)).data.length, 2);
    assert.equal(await Branches.deleteBranch(client, dataset.rid, "feature/a b"), undefined);
    assert.equal(await nameOf(() => Branches.get(client, dataset.rid, "feature/a b")),
                 "BranchNotFound");
  },

  async "schemas"() {
    const dataset = await Datasets.create(client, {
      name: unique("schemas"), parentFolderRid: TARN_PROJECT });
    await Files.upload(client, dataset.rid, "a", new Blob(["x"]));
    const schema = { fieldSchemaList: [{ type: "LONG", name: "é", nullable: true }] };
    const put = await Datasets.putSchema(client, dataset.rid, { schema }, { preview: true });
    assert.deepEqual(put.schema.fieldSchemaList, schema.fieldSchemaList);
    const got = await Datasets.getSchema(client, dataset.rid, { preview: true });
    assert.equal(got.versionId, put.versionId);
  },

  async "views"() {
    const dataset = await Datasets.create(client, {
      name: unique("input"), parentFolderRid: TARN_PROJECT });
    const view = await Views.create(client, {
      viewName: unique("view"), parentFolderRid: TARN_PROJECT,
      backingDatasets: [{ datasetRid: dataset.rid, stopPropagatingMarkingIds: [] }],
    }, { preview: true });
    const got = await Views.get(client, view.datasetRid, { preview: true });
    assert.equal(got.backingDatasets[0].datasetRid, dataset.rid);
  },

  async "places, roles and the trash"() {
    const spaces = await Spaces.list(client, { preview: true });
    const me = await Users.getCurrent(client);
    const project = await Projects.create(client, {
      displayName: unique("project"), spaceRid: spaces.data[0].rid, defaultRoles: [],
      organizationRids: [],
      roleGrants: { "compass:manage": [{ principalId: me.id, principalType: "USER" }] },
    }, { preview: true });
    assert.equal((await Projects.get(client, project.rid)).displayName, project.displayName);
    const folder = await Folders.create(client, {
      displayName: "folder", parentFolderRid: project.rid }, { preview: true });
    const children = await Folders.children(client, project.rid, { preview: true });
    assert.deepEqual(children.data.map((child) => child.rid), [folder.rid]);
    assert.equal(await ResourceRoles.add(client, folder.rid, {
      roles: [{ roleId: "compass:view", resourceRolePrincipal: { type: "everyone" } }],
    }, { preview: true }), undefined);
    const roles = await ResourceRoles.list(client, folder.rid, { preview: true });
    assert.equal(roles.data[0].roleId, "compass:view");
    assert.equal(await Resources.deleteResource(client, folder.rid, { preview: true }), undefined);
    const trashed = await Resources.get(client, folder.rid, { preview: true });
    assert.equal(trashed.trashStatus, "DIRECTLY_TRASHED");
    assert.equal(await Resources.restore(client, folder.rid, { preview: true }), undefined);
    assert.equal(await nameOf(() => Folders.get(client, "ri.compass.main.folder.none")),
                 "FolderNotFound");
  },

  async "users and groups"() {
    const me = await Users.getCurrent(client);
    assert.equal(me.username, "admin");
    assert.equal(await Users.profilePicture(client, me.id), undefined);
    const group = await Groups.create(client, {
      name: unique("group"), organizations: [me.organization], attributes: {} });
    assert.equal(await GroupMembers.add(client, group.id, { principalIds: [me.id] }), undefined);
    const members = await GroupMembers.list(client, group.id);
    assert.deepEqual(members.data.map((member) => member.principalId), [me.id]);
    assert.equal(await Groups.deleteGroup(client, group.id), undefined);
  },

  async "failures carry their parameters"() {
    const rid = "ri.foundry.main.dataset.00000000-0000-0000-0000-000000000000";
    try {
      await Datasets.get(client, rid);
      assert.fail("no failure");
    } catch (failure) {
      assert.equal(failure.errorName, "DatasetNotFound");
      assert.equal(failure.errorCode, "NOT_FOUND");
      assert.equal(failure.statusCode, 404);
      assert.equal(failure.parameters.datasetRid, rid);
      assert.match(failure.errorInstanceId, /^[0-9a-f-]{36}$/);
    }
  },
};

let failed = 0;
for (const [name, test] of Object.entries(tests)) {
  try {
    await test();
    console.log(`ok ${name}`);
  } catch (failure) {
    failed += 1;
    console.log(`FAILED ${name}: ${failure.stack ?? failure}`, failure.parameters ?? "");
  }
}
process.exit(failed === 0 ? 0 : 1);
