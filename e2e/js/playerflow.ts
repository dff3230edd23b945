// A client of the player API in TypeScript: the types come from the document that the service gives, so a call with a wrong
// name, a wrong field, or an answer that is read wrongly does not compile.
import type { paths } from "./playerflow.types";

type Calls = { [P in keyof paths as P extends `/playerflow/v1/player/${infer N}` ? N : never]: paths[P]["post"] };
type Body<N extends keyof Calls> = NonNullable<Calls[N]["requestBody"]> extends { content: { "application/json": infer B } } ? B : never;
type Answer<N extends keyof Calls> = Calls[N]["responses"] extends { 200: { content: { "application/json": infer A } } } ? A : never;
type Refusal = Calls["Party.CreateParty"]["responses"]["default"]["content"]["application/json"];

class Refused extends Error {
  constructor(readonly status: number, readonly refusal: Refusal) {
    super(`${refusal.code}: ${refusal.message}`);
  }
}

class Client {
  private token = "";
  constructor(private readonly url: string) {}

  async call<N extends keyof Calls>(name: N, body: Body<N>): Promise<Answer<N>> {
    const headers: Record<string, string> = { "Content-Type": "application/json" };
    if (this.token) headers.Authorization = `Bearer ${this.token}`;
    const answer = await fetch(`${this.url}/playerflow/v1/player/${name}`, { method: "POST", headers, body: JSON.stringify(body) });
    const json = await answer.json();
    if (!answer.ok) throw new Refused(answer.status, json as Refusal);
    return json as Answer<N>;
  }

  async login(player: string): Promise<Answer<"Session.Login">> {
    const answer = await this.call("Session.Login", { provider: "dev", token: JSON.stringify({ player_id: player }) });
    this.token = answer.access_token;
    return answer;
  }
}

function want(what: string, ok: boolean): void {
  if (!ok) throw new Error(what);
}

const client = new Client(process.env.MUSTER_URL!);
const login = await client.login("tess");
want("a new player is idle", login.flow.phase === "IDLE" && login.flow_snapshot.allowed_actions.includes("CreateParty"));
const made = await client.call("Party.CreateParty", { attributes: { mode: "duo" }, joinability: "OPEN" });
want("the player leads the party", made.party?.leader_ids[0] === "tess" && made.party.joinability === "OPEN");
want("the key is the party", made.flow.keys.PARTY_ID === made.party?.party_id);
const queues = await client.call("Matchmaking.ListQueues", {});
want("there is a queue", queues.queues.some((queue) => queue.name === "duel" && queue.open));
const refused = await client.call("Party.KickPlayer", { player_id: "nobody" }).then(() => undefined, (e: Refused) => e);
want("the refusal has a code and says how the player stands", refused?.refusal.code === "TARGET_NOT_IN_PARTY" && refused.refusal.flow?.phase === "IN_PARTY");
const events = await client.call("Session.PollEvents", { after_seq: 1 });
want("the events are there", events.resume === "REPLAY" && events.events[0]?.type === "OnAddedToParty");
const search = await client.call("Matchmaking.EnterMatchmaking", { queue: "duel" });
want("the player searches", search.ticket?.queue === "duel" && search.flow.phase === "MATCHMAKING");
const left = await client.call("Matchmaking.LeaveMatchmaking", {});
want("the search has ended", left.flow.phase === "IN_PARTY");
console.log("ok");
