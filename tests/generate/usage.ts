// How programs use the generated client: the compiler reads it, and a test runs it.
import { CancellationTokenSource } from "vscode-jsonrpc";
import {
  Client,
  KindsClient,
  Session,
  isKindsCountError,
  isKindsPetsError,
  type Cat,
  type Dog,
  type KindsPetsError,
  type Point,
} from "./kinds_client.js";

function said(error: KindsPetsError): string {
  switch (error.code) {
    case "NOT_THERE":
      return `no ${error.details.what} near ${JSON.stringify(error.details.near)}`;
    case "BUSY":
      return "busy";
    case "PERMISSION_ERROR":
      return error.details.path;
    default: {
      const never: never = error;
      return never;
    }
  }
}

export async function run(session: Session, say: (name: string, value: unknown) => void): Promise<void> {
  const kinds = new KindsClient(session);
  say("ping", (await new Client(session).ping()) satisfies "pong");
  const scalars = await kinds.scalars({
    a: 1, b: 1.5, c: "c", d: true, e: null, f: "/w==", g: "0.10", h: "2026-07-14T12:00:00Z", i: "2026-07-14",
    j: "12:30:00", k: "P1DT1.5S", l: "00000000-0000-0000-0000-000000000007", m: { m: [] },
  });
  say("scalars", scalars);
  say("enums", await kinds.enums({ color: "green", level: 2 }));
  const points: readonly Point[] = await kinds.list({ point: [1], pair: ["n"], triple: [3, "b", true], many: [4] });
  say("list", points);
  const pets: readonly (Cat | Dog)[] = await kinds.pets({ pet: { type: "cat", lives: 7 }, shape: [1, 1] });
  say("pets", pets.map((pet) => (pet.type === "cat" ? pet.lives : pet.name)));
  try {
    await kinds.pets({ pet: { type: "dog", name: "Rex" }, shape: [2, 2.5, "s"] });
  } catch (error) {
    if (!isKindsPetsError(error)) throw error;
    say("declared", said(error.failure));
  }
  await kinds.pets({ pet: { type: "cat", lives: "many" as unknown as number }, shape: [1, 1] }).catch((error) => {
    say("undeclared", `${isKindsPetsError(error)} ${error.code} ${error.data.param}`);
  });
  const odd = { from: 1, "a-b": "dash", list: [1], msgspec: {}, date: "2026-07-14" };
  say("tree", (await kinds.tree({ tree: { nodeName: "root" }, odd })).childNodes?.length);
  say("named", await kinds.named({ first: 1, second: 2 }));
  say("defaults", (await kinds.hostile_names()).items);

  const seen: unknown[] = [];
  try {
    for await (const pet of kinds.count({ to: 4 })) seen.push(pet.type === "cat" ? pet.lives : pet.name);
  } catch (error) {
    if (!isKindsCountError(error)) throw error;
    seen.push(error.failure.details.what);
  }
  say("stream", seen);
  const sums: number[] = await Promise.all([1, 2, 3].map(async (to) => {
    let sum = 0;
    for await (const pet of kinds.count({ to })) if (pet.type === "cat") sum += pet.lives ?? 0;
    return sum;
  }));
  say("streams", sums);
  for await (const number of kinds.forever()) if (number === 50) break;
  say("left", await new Client(session).ping());

  const serviceParams = { authorization: "Bearer one" };
  const traced = new KindsClient(session, { serviceParams });
  const beside: unknown[] = [await traced.traced()];
  serviceParams.authorization = "Bearer two";
  for await (const trace of traced.traces()) beside.push(trace);
  say("beside", [...beside, await kinds.traced()]);

  const source = new CancellationTokenSource();
  const asleep = kinds.sleep(source.token).catch((error) => say("cancelled", error.code));
  source.cancel();
  await asleep;
}

export async function lose(session: Session, kill: () => void, say: (name: string, value: unknown) => void): Promise<void> {
  const numbers = new KindsClient(session).forever();
  await numbers.next();
  kill();
  try {
    for await (const _ of numbers);
  } catch (error) {
    say("lost", error instanceof Error);
  }
}
