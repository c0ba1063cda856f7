/** An execution as the engine keeps it, for tests that need one which nobody requested. */
import { newId } from '../../src/core/ids.ts'
import type { Execution } from '../../src/modules/executions/types.ts'
import { now } from '../../src/core/time.ts'

/** `core.local`, requested by `tester` just now, unless `more` says otherwise. */
export function makeExecution(more: Partial<Execution> = {}): Execution {
  const at = now()
  return {
    id: newId(),
    revision: 1,
    status: 'requested',
    liveaction_id: newId(),
    action_ref: 'core.local',
    user: 'tester',
    action: {
      id: 'a',
      uid: 'action:core:local',
      ref: 'core.local',
      name: 'local',
      pack: 'core',
      description: '',
      enabled: true,
      runner_type: 'local-shell-cmd',
      entry_point: '',
      parameters: {},
      output_schema: {},
      tags: [],
      notify: {},
    },
    runner: {
      id: 'r',
      uid: 'runner_type:local-shell-cmd',
      name: 'local-shell-cmd',
      description: '',
      enabled: true,
      runner_package: 'local_runner',
      runner_module: 'local_shell_command_runner',
      runner_parameters: {},
    },
    trace_id: newId(),
    parent: null,
    rule: null,
    trigger: null,
    trigger_type: null,
    trigger_instance: null,
    origin: null,
    start_timestamp: at,
    end_timestamp: null,
    elapsed_seconds: null,
    delay: null,
    due_timestamp: null,
    result_size: null,
    parameters: {},
    sealed_parameters: null,
    context: { user: 'tester' },
    log: [{ status: 'requested', timestamp: at }],
    liveaction: { callback: {}, runner_info: {} },
    ...more,
  }
}
