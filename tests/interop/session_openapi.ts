// A client of openapi-fetch, with the types that openapi-typescript wrote, calls the notes: node session_openapi.js URL
import createClient from "openapi-fetch";
import type { components, paths } from "./notes.js";

declare const process: { argv: string[] };

const client = createClient<paths>({ baseUrl: process.argv[2] });

const added = await client.POST("/operations/notes/add", { body: { text: "one" } });
const note: components["schemas"]["Note"] = added.data!;
console.log(`add=${note.id} ${note.text}`);

const read = await client.GET("/operations/notes/read", { params: { query: { id: note.id } } });
console.log(`read=${read.data?.version}`);

const edited = await client.POST("/operations/notes/edit", { body: { id: note.id, text: "two", version: 1 } });
console.log(`edit=${edited.data?.text} ${edited.data?.version}`);

const found = await client.GET("/operations/notes/search", { params: { query: { text: "tw" } } });
console.log(`search=${found.data?.map((each) => each.text).join(" ")}`);

const missing = await client.GET("/operations/notes/read", { params: { query: { id: 99 } } });
if (missing.error?.code === "NO_SUCH_NOTE") {
  const id: number = missing.error.details.id; // the code tells which details there are
  console.log(`missing=${missing.response.status} ${missing.error.code} ${id}`);
}

const conflict = await client.POST("/operations/notes/edit", { body: { id: note.id, text: "three", version: 1 } });
if (conflict.error?.code === "EDIT_CONFLICT") {
  const { retryable, details } = conflict.error;
  console.log(`conflict=${conflict.response.status} ${retryable ? "True" : "False"} ${details.version}`);
}

const wrong = await client.POST("/operations/notes/add", { body: { text: "" } });
if (wrong.error?.code === "INVALID_INPUT") {
  console.log(`wrong=${wrong.response.status} ${wrong.error.details.param}`);
}

// @ts-expect-error a mutation has no GET
void (() => client.GET("/operations/notes/add"));
// @ts-expect-error the param is a number
void (() => client.GET("/operations/notes/read", { params: { query: { id: "one" } } }));
