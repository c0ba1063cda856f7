/** The current values of `GET /status`. */
import type { ComponentChildren, JSX } from 'preact'
import { useState } from 'preact/hooks'
import { list } from '../../api/client.ts'
import { useLoaded } from '../../api/load.ts'
import type { BackupFile, StatusRecord } from '../../api/records.ts'
import { Failure } from '../../components/failure.tsx'
import { formatBytes } from '../../components/size.ts'
import { formatSeconds, Time } from '../../components/time.tsx'
import { formatMilliseconds } from './samples.ts'

/** Titles of the queues. */
const queueTexts: Readonly<Record<string, string>> = {
  request: 'Queued',
  work: 'Starting',
  cancel: 'Canceling',
}

export function CurrentStatus({ status }: { status: StatusRecord }): JSX.Element {
  return (
    <div class="status-cards">
      <Work status={status} />
      <Load status={status} />
      <Storage status={status} />
    </div>
  )
}

/** What seldom changes. */
export function StatusParts({ status }: { status: StatusRecord }): JSX.Element {
  return (
    <div class="status-cards">
      <Components status={status} />
      <Listeners status={status} />
      <Gauges gauges={status.gauges} />
    </div>
  )
}

function Card({ title, children }: { title: string; children: ComponentChildren }): JSX.Element {
  const id = `status-${title.toLowerCase().replaceAll(' ', '-')}`
  return (
    <section class="card" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {children}
    </section>
  )
}

function Work({ status: { queues, gauges } }: { status: StatusRecord }): JSX.Element {
  const used = gauges['actionrunner.slots.used'] ?? 0
  const size = gauges['actionrunner.slots.size'] ?? 0
  const waitingForRules = gauges['rulesengine.queue.trigger']
  const pending = gauges['executions.pending'] ?? 0
  const delayed = gauges['executions.delayed'] ?? 0
  return (
    <Card title="Executions">
      <dl class="facts">
        <dt>Running</dt>
        <dd>
          {used} of {size} slots <Meter label="Slots used" value={used} max={size} high={size} />
        </dd>
        {queues.map(({ name, length, limit }) => (
          <QueueFacts key={name} name={queueTexts[name] ?? name} length={length} limit={limit} />
        ))}
        {delayed > 0 && (
          <>
            <dt>Delayed</dt>
            <dd>{delayed} by a policy or until a set time</dd>
          </>
        )}
        {pending > 0 && (
          <>
            <dt>Pending</dt>
            <dd>{pending} waiting for an answer</dd>
          </>
        )}
        {waitingForRules !== undefined && (
          <>
            <dt>Trigger instances</dt>
            <dd>{waitingForRules === 0 ? 'none' : waitingForRules} waiting for rules</dd>
          </>
        )}
      </dl>
    </Card>
  )
}

function QueueFacts({ name, length, limit }: { name: string; length: number; limit: number }): JSX.Element {
  return (
    <Fact name={name}>
      {length} <Meter label={name} value={length} max={limit} high={limit} />{' '}
      <span class={length >= limit ? 'problem' : 'hint'}>keep below {limit}</span>
    </Fact>
  )
}

function Load({ status: { event_loop: loop, gauges } }: { status: StatusRecord }): JSX.Element {
  const bytes = (key: string): string => textOf(gauges[key], formatBytes)
  return (
    <Card title="Load">
      <dl class="facts">
        <dt>Event loop delay</dt>
        <dd>
          {formatMilliseconds(loop.mean_ms)} mean, {formatMilliseconds(loop.p99_ms)} p99,{' '}
          {formatMilliseconds(loop.max_ms)} max
        </dd>
        <dt>Memory</dt>
        <dd>
          {bytes('process.memory.resident_bytes')} resident, {bytes('process.memory.heap_bytes')} heap
        </dd>
        <dt>Queued writes</dt>
        <dd>{gauges['database.waiting_units'] ?? '–'}</dd>
        <dt>Queued scans</dt>
        <dd>{gauges['database.waiting_scans'] ?? '–'} of 32</dd>
        <dt>Event streams</dt>
        <dd>{gauges['stream.connections'] ?? '–'}</dd>
      </dl>
    </Card>
  )
}

function Storage({ status: { disk, gauges } }: { status: StatusRecord }): JSX.Element {
  const bytes = (key: string): string => textOf(gauges[key], formatBytes)
  return (
    <Card title="Storage">
      <dl class="facts">
        <dt>Database</dt>
        <dd>
          {bytes('database.file_bytes')}, used {bytes('database.used_bytes')}, write-ahead log{' '}
          {bytes('database.log_bytes')}
        </dd>
        <dt>Free for the database</dt>
        <dd>{bytes('database.free_bytes')}</dd>
        <dt>Disk</dt>
        <dd>
          {disk === null ? (
            <span class="problem">no answer</span>
          ) : (
            <>
              {formatBytes(disk.free_bytes)} of {formatBytes(disk.total_bytes)} free{' '}
              <Meter
                label="Disk in use"
                value={disk.total_bytes - disk.free_bytes}
                max={disk.total_bytes}
                high={disk.total_bytes * 0.95}
              />
            </>
          )}
        </dd>
        {disk !== null && disk.total_inodes > 0 && (
          <>
            <dt>Inodes</dt>
            <dd>
              {disk.free_inodes.toLocaleString()} of {disk.total_inodes.toLocaleString()} free
            </dd>
          </>
        )}
        <dt>Last cleanup</dt>
        <dd>
          {gauges['garbagecollector.last_round_age_seconds'] === undefined
            ? 'none yet'
            : `${formatSeconds(gauges['garbagecollector.last_round_age_seconds'])} ago`}
        </dd>
      </dl>
      <Backups />
    </Card>
  )
}

const SHOWN_BACKUPS = 5

function Backups(): JSX.Element {
  const { data, error, reload } = useLoaded((signal) => list<BackupFile>('backups', {}, signal), [])
  if (error !== undefined) return <Failure error={error} onRetry={reload} />
  if (data === undefined) return <p class="hint">Loading backups…</p>
  const [newest] = data.items
  if (newest === undefined) {
    return (
      <p class="note">
        No backups yet. Run <code>svc backup</code> or set <code>backup.interval</code> to schedule them.
      </p>
    )
  }
  return (
    <>
      <h3>Backups</h3>
      <ul class="backups">
        {data.items.slice(0, SHOWN_BACKUPS).map(({ name, made_at: madeAt, kind, bytes }) => (
          <li key={name} title={name}>
            <Time at={madeAt} isShort />, {formatBytes(bytes)}, {kind}
          </li>
        ))}
      </ul>
      {data.items.length > SHOWN_BACKUPS && <p class="hint">and {data.items.length - SHOWN_BACKUPS} older</p>}
    </>
  )
}

function Listeners({ status: { urls } }: { status: StatusRecord }): JSX.Element {
  return (
    <Card title="Listeners">
      <dl class="facts">
        {Object.entries(urls).map(([name, url]) => (
          <Fact key={name} name={name}>
            <code>{url}</code>
          </Fact>
        ))}
      </dl>
      <p class="hint">The API listener also serves the paths of the others.</p>
    </Card>
  )
}

const stateTexts = { running: 'running', disabled: 'disabled', not_included: 'not included' } as const
const stateColours = { running: 'ok', disabled: 'paused', not_included: '' } as const

function Components({ status: { components } }: { status: StatusRecord }): JSX.Element {
  return (
    <Card title="Components">
      <dl class="facts components">
        {components.map(({ name, about, state }) => (
          <Fact key={name} name={name}>
            <span class="badge" data-status={stateColours[state]}>
              {stateTexts[state]}
            </span>{' '}
            <span class="hint">{about}</span>
          </Fact>
        ))}
      </dl>
    </Card>
  )
}

/** As they are in the metrics. */
function Gauges({ gauges }: Pick<StatusRecord, 'gauges'>): JSX.Element {
  const [isOpen, setIsOpen] = useState(false)
  return (
    <details class="card" open={isOpen} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>All gauges</summary>
      {isOpen && (
        <dl class="facts gauges">
          {Object.entries(gauges)
            .toSorted(([one], [other]) => (one < other ? -1 : 1))
            .map(([key, value]) => (
              <Fact key={key} name={key}>
                {value.toLocaleString(undefined, { maximumFractionDigits: 2 })}
              </Fact>
            ))}
        </dl>
      )}
    </details>
  )
}

function Fact({ name, children }: { name: string; children: ComponentChildren }): JSX.Element {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  )
}

/** @param props.high from where on it needs attention */
function Meter({ label, value, max, high }: { label: string; value: number; max: number; high: number }): JSX.Element {
  return <meter aria-label={label} min={0} max={Math.max(max, 1)} low={high} high={high} optimum={0} value={value} />
}

function textOf(value: number | undefined, format: (value: number) => string): string {
  return value === undefined ? '–' : format(value)
}
