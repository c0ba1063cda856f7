/**
 * Every schema change in order; forward only, never edited after a release. To add one: a file with the next number and
 * a line here. The list is static, so that a bundled build includes every file.
 */
import type { Migration } from 'kysely/migration'
import * as core from './0001-core.ts'
import * as access from './0002-access.ts'
import * as events from './0003-events.ts'
import * as content from './0004-content.ts'
import * as outputLines from './0005-output-lines.ts'
import * as executionLists from './0006-execution-lists.ts'
import * as statusHistory from './0007-status-history.ts'
import * as repeatedDeliveries from './0008-repeated-deliveries.ts'
import * as sealedHeaders from './0009-sealed-headers.ts'
import * as instanceOwners from './0010-instance-owners.ts'
import * as idempotentRequests from './0011-idempotent-requests.ts'
import * as workflows from './0012-workflows.ts'
import * as packRemarks from './0013-pack-remarks.ts'
import * as sensors from './0014-sensors.ts'
import * as packDisabledFiles from './0015-pack-disabled-files.ts'
import * as timerRuns from './0016-timer-runs.ts'
import * as ruleRuns from './0017-rule-runs.ts'
import * as jobs from './0019-jobs.ts'
import * as notifications from './0020-notifications.ts'

export const migrations: Record<string, Migration> = {
  '0001-core': core,
  '0002-access': access,
  '0003-events': events,
  '0004-content': content,
  '0005-output-lines': outputLines,
  '0006-execution-lists': executionLists,
  '0007-status-history': statusHistory,
  '0008-repeated-deliveries': repeatedDeliveries,
  '0009-sealed-headers': sealedHeaders,
  '0010-instance-owners': instanceOwners,
  '0011-idempotent-requests': idempotentRequests,
  '0012-workflows': workflows,
  '0013-pack-remarks': packRemarks,
  '0014-sensors': sensors,
  '0015-pack-disabled-files': packDisabledFiles,
  '0016-timer-runs': timerRuns,
  '0017-rule-runs': ruleRuns,
  '0019-jobs': jobs,
  '0020-notifications': notifications,
}
