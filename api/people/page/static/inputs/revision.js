// The form of a new revision, which begins as a copy of an existing one. Values of variables are masked, and kept.
import { ask } from "../stream.js";

const OF_SOURCE = new Set(["image", "command", "values_of"]); // the content has them
const SHOWN = {
  revision: { isFirst: true, names: "", meaning: "The name of the new revision. Left out: made from its content." },
  spec: { may_be_null: false, default: {}, meaning: "", label: "Content" },
};

/** The revision to copy; empty for none. */
export function sourceOf({ fields, from }, deployment) {
  if (!fields.some(({ name }) => name === "values_of")) return "";
  return from ?? deployment.current_revision;
}

/** The fields of the dialog: the name, and the whole content. */
export const fieldsFrom = (fields) => fields.filter(({ name }) => !OF_SOURCE.has(name)).map((field) => ({ ...field, ...SHOWN[field.name] }));

/** The first values of the fields. */
export async function valuesOf(deployment, source) {
  const { spec } = await ask(`/v1/deployments/${encodeURIComponent(deployment.name)}/revisions/${encodeURIComponent(source)}`);
  return { spec };
}
