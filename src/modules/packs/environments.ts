/** The Python environments of packs, as this module needs them. */
import type { PackWork } from '../../runners/index.ts'

export type EnvironmentWork = Pick<PackWork, 'signal' | 'emit' | 'executionId'>

/** `problem` is a sentence for people. */
export type EnvironmentOutcome = { program: string } | { problem: string }

/** Port: the Python environments of packs. `app.ts` fills it. */
export interface VirtualenvBuilder {
  /** Makes the environment of a pack that has requirements, and brings it up to date. */
  ensure(pack: string, packFolder: string, work: EnvironmentWork): Promise<EnvironmentOutcome>
  /** The same, from nothing. */
  recreate(pack: string, packFolder: string, work: EnvironmentWork): Promise<EnvironmentOutcome>
  remove(pack: string): Promise<void>
  /** What it lacks; undefined: the pack has no requirements. */
  examine(pack: string, packFolder: string): Promise<EnvironmentState | undefined>
}

export interface EnvironmentState {
  /** Packages that are not installed. */
  missing: string[]
  /** Why they could not be. */
  problem?: string
}
