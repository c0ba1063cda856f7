/** Reading a StackStorm installation: what there is, and what becomes of it. Nothing here changes anything. */
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
