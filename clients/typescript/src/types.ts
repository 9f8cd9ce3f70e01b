/** What each operation takes and answers, read from the types that are made from the OpenAPI document. */

import type { operations } from "./made/schema.ts";

export type OperationName = keyof operations;

/** One object, whose optional fields may be undefined too. */
type Flat<Type> = Type extends unknown
  ? { [Name in keyof Type]: Type[Name] | (object extends Pick<Type, Name> ? undefined : never) }
  : never;
type Known<Type> = [Exclude<Type, undefined>] extends [never] ? unknown : Exclude<Type, undefined>;
type Place<Name extends OperationName, Where extends "path" | "query"> = Known<operations[Name]["parameters"][Where]>;
type Sent<Type> = Type extends { content: infer Kinds } ? Kinds[keyof Kinds] : unknown;
type Body<Name extends OperationName> = Sent<Known<operations[Name]["requestBody"]>>;
type Content<Type> = Type extends { content: infer Kinds } ? ([Kinds] extends [never] ? void : Kinds[keyof Kinds]) : void;
type Responses<Name extends OperationName> = operations[Name]["responses"];

/** The arguments of an operation: the parts of its path, its query, and the fields of its body. */
export type Given<Name extends OperationName> = Flat<
  Place<Name, "path"> & Place<Name, "query"> & (string extends keyof Body<Name> ? { patch: Body<Name> } : Body<Name>)
>;

/** The answer of an operation; several types where it depends on the status. */
export type Answer<Name extends OperationName> = Content<Responses<Name>[keyof Responses<Name>]>;

/** What the stream of an operation gives, one after the other. */
export type Item<Name extends OperationName> = Answer<Name>;
