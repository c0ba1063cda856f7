/** Table `webhook_deliveries`. Reads, and functions that return steps. */
import { sql } from 'kysely'
import { type Database, type Step, columnsOf, prepared, type WebhookDeliveryTable } from '../../db/index.ts'
export type DeliveryKey = Pick<WebhookDeliveryTable, 'hook' | 'caller' | 'key_hash'>

export interface DeliveryStore {
  find(key: DeliveryKey): WebhookDeliveryTable | undefined
  /**
   * Fails with `Conflict` if the delivery is stored and not expired.
   *
   * @param before wire timestamp: older deliveries are expired, and this deletes a few of them
   * @param replaced `trigger_instances` of a delivery that this one replaces; empty: none
   */
  insert(delivery: WebhookDeliveryTable, before: string, replaced: string): Step[]
}

/** Expired deliveries deleted per insert, which bounds the table. */
const DELETED_TOGETHER = 5

const sample: WebhookDeliveryTable = {
  hook: '',
  caller: '',
  key_hash: '',
  body_hash: '',
  trace_id: '',
  trigger_instances: '',
  created_at: '',
  rules: '',
}

export function createDeliveryStore(database: Database): DeliveryStore {
  const { build } = database
  const find = prepared(
    build
      .selectFrom('webhook_deliveries')
      .selectAll()
      .where('hook', '=', '')
      .where('caller', '=', '')
      .where('key_hash', '=', ''),
    ({ hook, caller, key_hash }: DeliveryKey) => [hook, caller, key_hash],
  )
  const columns = columnsOf(sample)
  const insert = prepared(
    build
      .insertInto('webhook_deliveries')
      .values(sample)
      .onConflict((on) =>
        on
          .columns(['hook', 'caller', 'key_hash'])
          .doUpdateSet((excluded) => ({
            body_hash: excluded.ref('excluded.body_hash'),
            trace_id: excluded.ref('excluded.trace_id'),
            trigger_instances: excluded.ref('excluded.trigger_instances'),
            created_at: excluded.ref('excluded.created_at'),
            rules: excluded.ref('excluded.rules'),
          }))
          .where((row) =>
            row.or([
              row('webhook_deliveries.created_at', '<', ''),
              row('webhook_deliveries.trigger_instances', '=', ''),
            ]),
          ),
      ),
    ({ delivery, before, replaced }: { delivery: WebhookDeliveryTable; before: string; replaced: string }) => [
      ...columns(delivery),
      before,
      replaced,
    ],
  )
  const deleteOld = prepared(
    build.deleteFrom('webhook_deliveries').where(
      sql`rowid`,
      'in',
      build
        .selectFrom('webhook_deliveries')
        .select(sql`rowid`.as('row'))
        .where('created_at', '<', '')
        .orderBy('created_at')
        .limit(DELETED_TOGETHER),
    ),
    (before: string) => [before, DELETED_TOGETHER],
  )
  return {
    find: (key) => database.first(find(key)) as WebhookDeliveryTable | undefined, // all columns of the table
    insert: (delivery, before, replaced) => [
      { query: insert({ delivery, before, replaced }), expect: 1 },
      { query: deleteOld(before) },
    ],
  }
}
