/** Reading a StackStorm installation: what there is, and what becomes of it. Nothing here changes anything. */
export { createDecrypt, readDatastoreKey, type DatastoreKey, type Decrypt } from './cipher.ts'
export { PackRefused, placePack, readTree, recoverPacks, type PackTree } from './copy-pack.ts'
export {
  importedHistory,
  readHistory,
  readLiveActions,
  type HistoryLookups,
  type ImportedHistoryKind,
} from './history.ts'
export { openLedger, type Decision, type Ledger } from './ledger.ts'
export { loadRecords, type LoadedRecord, type LoadedRecords } from './load-records.ts'
export type { Fields } from './read-records.ts'
export { recordKinds, leftBehind, type HistoryKind, type RecordKind } from './records.ts'
export { readSite, type SiteFile } from './site-files.ts'
export { viewOf } from './views.ts'
export { proposeConf, readConf, type ConfOption, type ConfReading, type OptionOutcome } from './conf.ts'
export { scanPack, packKinds, type PackKind, type PackScan } from './pack-scan.ts'
export { findPlaces, type GivenPlaces, type Places } from './places.ts'
export {
  addContent,
  percentOf,
  sumOf,
  type CheckReport,
  type PackReport,
  type PackState,
  type Share,
} from './report.ts'
