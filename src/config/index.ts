export { ConfigProblems, collectFlags, configFlags, loadConfig, type Config, type LoadedConfig } from './load.ts'
export { readLogFiles, type LogFiles } from './logging-files.ts'
export { optionEntries, type JsonObject } from './options.ts'
