export {
  conductChain,
  createChainMemory,
  type ChainMemory,
  type ChainOutside,
  type ChainRefusal,
  type ChainWorld,
} from './conduct.ts'
export {
  findFirst,
  findReferenceMistakes,
  hasBothParameters,
  loadChain,
  readChain,
  readNode,
  type Chain,
  type ChainProblem,
  type ChainSource,
  type Node,
} from './definition.ts'
export {
  brokenOff,
  requestOf,
  resultOf,
  savedVariables,
  type ChainResult,
  type ChildRecord,
  type Failure,
  type NodeRequest,
  type NodeResult,
  type NodeRun,
} from './result.ts'
export { reviewChain } from './review.ts'
export { inspectChainShape, isHarmless, NODE_SCHEMA_PATH, withoutEmptyKeys } from './schema.ts'
export { renderValue, type ChainScope, type RenderChainValue } from './template.ts'
