/**
 * Schemas that TypeScript understands. One declaration gives the type (`Static`), the check of requests and the
 * component of the OpenAPI document. They are plain JSON schemas, made by `typebox`.
 */
import {
  Array,
  Boolean,
  Enum,
  Integer,
  Literal,
  Null,
  Number,
  Object as ObjectOf,
  Optional,
  String,
  Union,
  Unknown,
  Unsafe,
  type Static,
  type TObject,
  type TOptional,
  type TProperties,
  type TSchema,
  type TSchemaOptions,
  type TUnsafe,
} from 'typebox'

export type { Static, TObject, TProperties }

/** A JSON schema: plain data, or one with a known type. */
export type Schema = TSchema & object

/** Only the parts of the library that need no type evaluation at run time: the rest loads five times slower. */
export const Type = {
  Array,
  Boolean,
  /** One of several strings: `Type.Enum(['a', 'b'])`. */
  Enum,
  Integer,
  Literal,
  Null,
  Number,
  Object: ObjectOf,
  Optional,
  String,
  /** Problems of a union only say that no alternative fits. Use `Enum` for strings and `Nullable` for null. */
  Union,
  Unknown,
  Unsafe,

  /** The value or null, checked as one type: `… is not of type 'string', 'null'`. */
  Nullable<S extends Schema>(schema: S): TUnsafe<Static<S> | null> {
    const { type, enum: values }: { type?: unknown; enum?: unknown } = schema
    return Unsafe<Static<S> | null>({
      ...schema,
      ...(type === undefined ? {} : { type: [type, 'null'].flat() }),
      ...(globalThis.Array.isArray(values) ? { enum: [...(values as unknown[]), null] } : {}),
    })
  },

  /** An object with any keys and values. */
  FreeForm(options: TSchemaOptions = {}): TUnsafe<Record<string, unknown>> {
    return Unsafe<Record<string, unknown>>({ type: 'object', additionalProperties: true, ...options })
  },

  /** An object with any keys, whose values fit the schema. */
  MapOf<S extends Schema>(values: S, options: TSchemaOptions = {}): TUnsafe<Record<string, Static<S>>> {
    return Unsafe<Record<string, Static<S>>>({ type: 'object', additionalProperties: values, ...options })
  },

  /** All properties of another object schema, each optional. */
  Partial<P extends TProperties>({ properties }: TObject<P>): TObject<{ [K in keyof P]: TOptional<P[K]> }> {
    const optional = Object.fromEntries(Object.entries(properties).map(([name, value]) => [name, Optional(value)]))
    return ObjectOf(optional as { [K in keyof P]: TOptional<P[K]> }) // the same names
  },
}

/**
 * Names a schema in the OpenAPI document, which lists it as a component with an example.
 *
 * @param name unique in the whole product, such as `Execution`
 */
export function record<S extends Schema>(
  name: string,
  schema: S,
  more: { example: Static<S>; description?: string },
): S {
  const { example, description } = more
  return named(schema, { title: name, ...(description === undefined ? {} : { description }), examples: [example] })
}

/** The copy keeps the non-enumerable marks that the library puts on schemas. */
function named<S extends Schema>(schema: S, options: TSchemaOptions): S {
  const descriptors = Object.getOwnPropertyDescriptors(schema)
  return Object.assign(Object.create(Object.getPrototypeOf(schema) as object, descriptors) as S, options)
}
