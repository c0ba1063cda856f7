/** What a rule can react to, and what it can run. */
import { ApiError, get, list } from '../../api/client.ts'
import { useLoaded, type Loaded } from '../../api/load.ts'
import type { ActionRecord, TriggerTypeRecord } from '../../api/records.ts'
import { parametersOfSchema, type ParameterSchemas } from '../../components/form/field.ts'

export type OfferedType = Pick<TriggerTypeRecord, 'ref' | 'description'>
export type OfferedAction = Pick<ActionRecord, 'ref' | 'description'>

/** The largest page that anybody may ask for unless it was configured otherwise. */
const PAGE = 100
const MAX_TYPES = 2000

/** Those that the caller may view. */
export function useTriggerTypes(): Loaded<OfferedType[]> {
  return useLoaded(
    async (signal) => {
      const found: OfferedType[] = []
      for (;;) {
        const query = { include_attributes: 'ref,description', limit: PAGE, offset: found.length }
        const { items, total } = await list<OfferedType>('triggertypes', query, signal)
        found.push(...items)
        if (items.length === 0 || found.length >= Math.min(total, MAX_TYPES)) return found
      }
    },
    [],
    ['trigger_type'],
  )
}

export function useActions(): Loaded<OfferedAction[]> {
  return useLoaded(
    async (signal) => (await list<OfferedAction>('actions', { include_attributes: 'ref,description' }, signal)).items,
    [],
    ['action'],
  )
}

/** What is known of a trigger type, or of the parameters of an action; undefined: nothing, there is none to be seen. */
export interface KnownParameters {
  description: string
  /** Undefined: it does not say which there are. */
  parameters: ParameterSchemas | undefined
  /** Of the payload. */
  payload?: unknown
  /** Parameters that are rarely needed. */
  rare?: ReadonlySet<string>
}

export function useTriggerType(ref: string): Loaded<KnownParameters | undefined> {
  return useLoaded(
    async (signal): Promise<KnownParameters | undefined> => {
      if (ref === '') return undefined
      const type = await found(get<TriggerTypeRecord>(`triggertypes/${encodeURIComponent(ref)}`, undefined, signal))
      if (type === undefined) return undefined
      const { description, parameters_schema: schema, payload_schema: payload } = type
      const takesNone = Object.keys(schema).length === 0
      return { description, parameters: takesNone ? {} : parametersOfSchema(schema), payload }
    },
    [ref],
    ['trigger_type'],
  )
}

export function useAction(ref: string): Loaded<KnownParameters | undefined> {
  return useLoaded(
    async (signal): Promise<KnownParameters | undefined> => {
      if (ref === '') return undefined
      const path = encodeURIComponent(ref)
      const [whole, own] = await Promise.all([
        found(get<ActionRecord>(`actions/views/overview/${path}`, undefined, signal)),
        found(get<ActionRecord>(`actions/${path}`, undefined, signal)),
      ])
      if (whole === undefined || own === undefined) return undefined
      const { description, parameters } = whole
      const says = Object.keys(own.parameters).some((name) => parameters[name]?.immutable !== true)
      const rare = new Set(says ? Object.keys(parameters).filter((name) => !Object.hasOwn(own.parameters, name)) : [])
      return { description, parameters, rare }
    },
    [ref],
    ['action'],
  )
}

/** @returns undefined when there is none that the caller may see @throws what else goes wrong */
async function found<T>(loading: Promise<T>): Promise<T | undefined> {
  try {
    return await loading
  } catch (error) {
    if (error instanceof ApiError && (error.status === 404 || error.status === 403)) return undefined
    throw error
  }
}
