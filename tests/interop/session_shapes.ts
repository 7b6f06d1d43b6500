// A client of openapi-fetch forgets no tag: node session_shapes.js URL
import createClient from "openapi-fetch";
import type { components, paths } from "./shapes.js";

declare const process: { argv: string[] };

const client = createClient<paths>({ baseUrl: process.argv[2] });

const area = await client.POST("/operations/shapes/area", { body: { shape: { type: "square", a: 2 } } });
console.log(`area=${area.data}`);

const circle: components["schemas"]["Circle"] = { type: "circle", r: 1 }; // its label has a default
const swapped = await client.POST("/operations/shapes/swap", { body: { pair: { left: circle } } });
const left = swapped.data!.left;
console.log(`swap=${left.type === "circle" ? left.r : left.a}`); // the tag tells which members there are

// @ts-expect-error the tag is forgotten
void (() => client.POST("/operations/shapes/area", { body: { shape: { a: 2 } } }));
// @ts-expect-error the tag is that of another
void (() => client.POST("/operations/shapes/area", { body: { shape: { type: "circle", a: 2 } } }));
// @ts-expect-error there is no such tag
void (() => client.POST("/operations/shapes/area", { body: { shape: { type: "line", a: 2 } } }));
