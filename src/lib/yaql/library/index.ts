import { FunctionTable } from '../signature.ts'
import { branching } from './branching.ts'
import { conversion } from './conversion.ts'
import { dictionaries } from './dictionaries.ts'
import { lists } from './lists.ts'
import { math } from './math.ts'
import { operators } from './operators.ts'
import { regexes } from './regexes.ts'
import { sequences } from './sequences.ts'
import { sets } from './sets.ts'
import { strings } from './strings.ts'
import { system } from './system.ts'
import { times } from './times.ts'

let table: FunctionTable | undefined

/** The functions of the language. */
export function library(): FunctionTable {
  return (table ??= new FunctionTable([
    ...operators,
    ...sequences,
    ...lists,
    ...dictionaries,
    ...sets,
    ...strings,
    ...regexes,
    ...math,
    ...conversion,
    ...branching,
    ...system,
    ...times,
  ]))
}
