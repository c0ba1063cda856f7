/** The whole record of an execution, and the commands that print it. */
import type { JSX } from 'preact'
import type { ExecutionRecord } from '../../../api/records.ts'
import { CopyButton } from '../../../components/copy-button.tsx'
import { JsonTree } from '../../../components/json-tree.tsx'
import { fieldsOf, type ParameterSchemas } from '../../../components/form/field.ts'
import { formatBytes } from '../../../components/size.ts'
import { svcCommand } from '../../actions/command-line.ts'
import { containsMask } from './rerun-plan.ts'
import { writeJson } from '../../../json.ts'

export function Raw({ record }: { record: ExecutionRecord }): JSX.Element {
  const { id, result, result_size: size = 0, parameters_size: parametersSize } = record
  return (
    <>
      <section class="card" aria-label="Commands">
        <h2>Command line</h2>
        <Command title="Get the record" text={`svc execution get ${id} --json`} />
        <Command title="Follow the output" text={`svc execution tail ${id}`} />
        <Command title="Re-run" text={`svc execution re-run ${id}`} />
        <Command title="Run with these parameters" {...runOf(record)} />
      </section>
      <section class="card" aria-label="Record">
        <div class="card-head">
          <h2>Record</h2>
          <CopyButton text={() => writeJson(record, 2)} title="Copy as JSON" />
        </div>
        {result === undefined && size > 0 && (
          <p class="hint">Without the result of {formatBytes(size)}: see General.</p>
        )}
        {parametersSize !== undefined && (
          <p class="hint">Without the parameters of {formatBytes(parametersSize)}: see General.</p>
        )}
        <JsonTree value={record} />
      </section>
    </>
  )
}

const MAX_COMMAND = 2000

function Command({
  title,
  text,
  omitted = [],
}: {
  title: string
  text: string
  omitted?: readonly string[]
}): JSX.Element {
  return (
    <div class="command-line">
      <span class="label">{title}</span>
      <code>{text.length > MAX_COMMAND ? `${text.slice(0, MAX_COMMAND)}…` : text}</code>
      <CopyButton text={text} />
      {omitted.length > 0 && (
        <span class="hint">Without {omitted.join(', ')}: secret, or without a command-line form.</span>
      )}
    </div>
  )
}

function runOf({ action, runner, parameters = {} }: ExecutionRecord): { text: string; omitted: string[] } {
  const schemas: ParameterSchemas = { ...runner.runner_parameters }
  const merged = Object.entries(action.parameters).map(([name, schema]) => [name, { ...schemas[name], ...schema }])
  const shown = Object.entries(parameters).filter(([, value]) => !containsMask(value))
  const { text, omitted } = svcCommand(
    { ref: action.ref, parameters: Object.fromEntries(shown) },
    fieldsOf({ ...schemas, ...Object.fromEntries(merged) }),
  )
  const hidden = Object.keys(parameters).filter((name) => containsMask(parameters[name]))
  return { text, omitted: [...hidden, ...omitted] }
}
