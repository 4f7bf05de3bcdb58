// A program with the client that openapi-typescript makes: it creates, applies, waits, undoes and reads events.
import createClient from "openapi-fetch";
import type { components, paths } from "./rollway.js";

const [url, token, command] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: url, headers: { authorization: `Bearer ${token}` } });
const path = { deployment: "typed" };
type Document = components["schemas"]["Document"];

/** What was answered, or the refusal as an error. */
function told<T>({ data, error }: { data?: T; error?: components["schemas"]["Problem"] }): T {
  if (error !== undefined || data === undefined) throw new Error(error?.detail ?? "no answer");
  return data;
}

async function until(revision: string): Promise<void> {
  for (;;) {
    const seen = told(await client.GET("/v1/deployments/{deployment}", { params: { path } }));
    if (seen.lifecycle === "ready" && seen.current_revision === revision) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function apply(name: string, more: string): Promise<string | null> {
  const revision = { name, command: [...command.split(" "), more], health_check: { path: "/health", interval_seconds: 0.2 } };
  const documents: Document[] = [{ deployment: path.deployment, replicas: 1, revision }];
  return told(await client.POST("/v1/apply", { body: { documents } })).documents[0].rollout_id;
}

async function heard(): Promise<string[]> {
  const { data } = await client.GET("/v1/events", { params: { query: { deployment: path.deployment } }, parseAs: "stream" });
  const kinds: string[] = [];
  let text = "";
  for await (const piece of data as unknown as AsyncIterable<Uint8Array>) {
    text += new TextDecoder().decode(piece);
    kinds.push(...[...text.matchAll(/^data: .*"phase":"(\w+)"/gm)].map((found) => found[1]));
    if (kinds.includes("undo")) break;
  }
  return [...new Set(kinds)];
}

const policy = { strategy: "rolling_update", spec: { max_surge: 1, max_unavailable: 0 } };
const made = told(await client.POST("/v1/deployments", { body: { deployment: path.deployment, policy } }));
const events = heard();
await apply("v1", "first");
await until("v1");
const rollout = await apply("v2", "second");
await until("v2");
const plan = told(await client.POST("/v1/deployments/{deployment}/undo/plan", { params: { path }, body: {} }));
const back = told(await client.POST("/v1/deployments/{deployment}/undo", { params: { path }, body: { reason: "to see" } }));
await until("v1");
const refused = await client.POST("/v1/deployments/{deployment}/resume", { params: { path } });
console.log(JSON.stringify({
  made: made.version > 0,
  "has a rollout": rollout !== null,
  "is planned": plan.waves.length > 0,
  back: back.revision,
  heard: (await events).includes("undo"),
  refused: refused.error?.code,
}));
