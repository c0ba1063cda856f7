/** Something that has happened, or that somebody writes down, to try a rule with. */
import { useEffect, useMemo, useState } from 'preact/hooks'
import { get, list, messageOf } from '../../api/client.ts'
import { useLoaded, type Loaded } from '../../api/load.ts'
import type { RuleTestRequest, TriggerInstanceRecord } from '../../api/records.ts'
import { readJsonText, mistakeText } from '../../components/form/json-text.ts'
import { pathsOfPayload, type PayloadPath } from '../../components/rules/paths.ts'

/** In the place of an id. */
export const PASTED = 'pasted'

const SHOWN = 20
/** Paths of larger payloads are not offered. */
const MAX_PAYLOAD_BYTES = 1024 * 1024

export type RecordedInstance = Pick<TriggerInstanceRecord, 'id' | 'trigger' | 'occurrence_time' | 'status'>

export interface Recorded {
  /** The last ones. */
  instances: Loaded<RecordedInstance[]>
  /** Id of a trigger instance, `PASTED`, or empty: nothing yet. */
  choice: string
  readonly choose: (choice: string) => void
  /** What is pasted. */
  text: string
  readonly setText: (text: string) => void
  /** What is known of the chosen one. */
  paths: readonly PayloadPath[]
  /** Why there are no paths, in words. */
  problem: string | undefined
  payload: unknown
  /** For a test; undefined: nothing is chosen, or it is no JSON. */
  request: Pick<RuleTestRequest, 'trigger_instance' | 'trigger_instance_id'> | undefined
}

/**
 * @param about which ones are listed: those of a trigger, else of a type; undefined: none
 * @param first id of the one that is chosen at first
 */
export function useRecorded(about: { trigger?: string; type: string } | undefined, first?: string): Recorded {
  const [picked, setPicked] = useState(first ?? '')
  const [text, setText] = useState('')
  const { trigger, type } = about ?? { type: '' }
  const instances = useLoaded(
    async (signal): Promise<RecordedInstance[]> => {
      if (about === undefined || type === '') return []
      const query = {
        ...(trigger === undefined ? { trigger_type: type } : { trigger }),
        limit: SHOWN,
        include_attributes: 'id,trigger,occurrence_time,status',
      }
      return (await list<RecordedInstance>('triggerinstances', query, signal)).items
    },
    [trigger, type],
  )
  // Of another trigger it says nothing.
  const [chosenFor, setChosenFor] = useState(type)
  useEffect(() => {
    if (chosenFor === type) return
    setChosenFor(type)
    if (chosenFor !== '') setPicked((earlier) => (earlier === PASTED ? earlier : ''))
  }, [type])
  const choice = picked === '' ? (instances.data?.[0]?.id ?? '') : picked
  const loaded = useLoaded(
    async (signal) =>
      choice === '' || choice === PASTED
        ? undefined
        : get<TriggerInstanceRecord>(`triggerinstances/${choice}`, { max_payload_size: MAX_PAYLOAD_BYTES }, signal),
    [choice],
  )
  const pasted = useMemo(() => (text.trim() === '' ? undefined : readJsonText(text)), [text])
  const payload = choice === PASTED ? pasted?.value : loaded.data?.payload
  const paths = useMemo(() => (payload === undefined ? [] : pathsOfPayload(payload)), [payload])
  return {
    instances,
    choice,
    choose: setPicked,
    text,
    setText,
    paths,
    payload,
    problem: problemOf(),
    request: requestOf(),
  }

  function problemOf(): string | undefined {
    if (choice === PASTED) return pasted?.mistake === undefined ? undefined : mistakeText(pasted.mistake)
    if (loaded.error !== undefined) return messageOf(loaded.error)
    return loaded.data?.payload_size === undefined ? undefined : 'The payload is too large to show here.'
  }

  function requestOf(): Recorded['request'] {
    if (choice === '') return undefined
    if (choice !== PASTED) return { trigger_instance_id: choice }
    if (type === '' || pasted === undefined || pasted.mistake !== undefined) return undefined
    return { trigger_instance: { trigger: type, payload: pasted.value } }
  }
}
