/** Chooses how processes are started on this machine. */
import { createChildProcessLauncher } from './child-process.ts'
import type { Launcher } from './launcher.ts'
import { createPosixSpawnLauncher } from './posix-spawn.ts'

export type LauncherKind = 'posix-spawn-thread' | 'child-process'

export interface ChosenLauncher {
  launcher: Launcher
  /** Why the slower launcher had to be taken; absent when it was asked for or is not in use. */
  fallbackReason?: string
}

/**
 * The thread that calls `posix_spawn` where its library and the kernel allow it, else `node:child_process`.
 *
 * With `kind` there is no choice: rejects when that one does not work here.
 */
export async function createLauncher(kind?: LauncherKind): Promise<ChosenLauncher> {
  if (kind === 'child-process') return { launcher: createChildProcessLauncher() }
  if (kind === 'posix-spawn-thread') return { launcher: await createPosixSpawnLauncher() }
  try {
    return { launcher: await createPosixSpawnLauncher() }
  } catch (error) {
    return {
      launcher: createChildProcessLauncher(),
      fallbackReason: error instanceof Error ? error.message : String(error),
    }
  }
}
