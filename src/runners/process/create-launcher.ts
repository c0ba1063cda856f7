/** Chooses the launcher for this machine. */
import { createChildProcessLauncher } from './child-process.ts'
import type { Launcher } from './launcher.ts'
import { createPosixSpawnLauncher } from './posix-spawn.ts'

export type LauncherKind = 'posix-spawn-thread' | 'child-process'

export interface ChosenLauncher {
  launcher: Launcher
  /** Why the slower launcher is in use; absent when it was requested or is not in use. */
  fallbackReason?: string
}

/**
 * The thread that calls `posix_spawn` if its library and the kernel allow it, otherwise `node:child_process`.
 *
 * `kind` forces a launcher: rejects when it does not work here.
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
