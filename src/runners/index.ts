/** Every runner there is. To add one, write its file and list it here. */
import { inheritedEnvironment } from './environment.ts'
import { createLocalShellCmd } from './local-shell-cmd.ts'
import { createNoop } from './noop.ts'
import { createProcessTrees, type ProcessTrees } from './process/kill-tree.ts'
import type { Launcher } from './process/launcher.ts'
import type { SystemUserDecision } from './process/system-user.ts'
import type { Runner } from './runner.ts'

export { inheritedEnvironment } from './environment.ts'
export { type ChosenLauncher, createLauncher, type LauncherKind } from './process/create-launcher.ts'
export { createProcessTrees, type Leftover, MARKER_NAME, type ProcessTrees } from './process/kill-tree.ts'
export { decideSystemUser, type SystemUserDecision } from './process/system-user.ts'

export interface RunnerSettings {
  launcher: Launcher
  /** Shared with whoever sweeps at start-up; made here when absent. */
  trees?: ProcessTrees
  /** `actionrunner.max_result_bytes`. */
  maxResultBytes: number
  /** From `decideSystemUser`; its `reason` is worth a WARNING. */
  systemUser: SystemUserDecision
  /** What children inherit; default: the server's own environment without configuration overrides. */
  inheritedEnv?: Readonly<Record<string, string>>
  /** Told about processes that could not be ended. */
  warn(message: string, fields: Record<string, unknown>): void
}

export function createRunners(settings: RunnerSettings): Runner[] {
  const deps = {
    ...settings,
    trees: settings.trees ?? createProcessTrees({ launcher: settings.launcher }),
    inheritedEnv: settings.inheritedEnv ?? inheritedEnvironment(),
  }
  return [createLocalShellCmd(deps), createNoop()] satisfies Runner[]
}
