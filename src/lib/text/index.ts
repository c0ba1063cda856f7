export { asciiLower } from './ascii-lower.ts'
export { closestWords } from './closest-words.ts'
export { withoutControlSequences } from './control-sequences.ts'
export { cutText } from './cut-text.ts'
export { shown } from './shown.ts'
export { parseIni, parseIniBytes, type IniFile, type IniValue } from './ini.ts'
export {
  describeProblem,
  listFiles,
  problemAt,
  readJsonDocument,
  readMetadataFile,
  readStrictYamlDocument,
  readYamlDocument,
  refuseWarnings,
  whyUnreadable,
  type FileProblem,
  type MetadataDocument,
  type MetadataProblem,
  type YamlLimits,
} from './metadata.ts'
export { size } from './size.ts'
export { exactDumpSchema, pythonDumpSchema, pythonYamlSchema } from './yaml.ts'
export { nonTextKeysOf } from '../yaml/index.ts'
