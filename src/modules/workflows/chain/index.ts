export { conductChain, createChainMemory, type ChainRefusal, type ChainWorld } from './conduct.ts'
export {
  findFirst,
  findReferenceMistakes,
  hasBothParameters,
  loadChain,
  readChain,
  readNode,
  type Chain,
  type ChainProblem,
  type Node,
} from './definition.ts'
export { brokenOff, requestOf, resultOf, type ChildRecord, type Failure, type NodeRun } from './result.ts'
export { reviewChain } from './review.ts'
export { inspectChainShape, isHarmless, NODE_SCHEMA_PATH, withoutEmptyKeys } from './schema.ts'
export { renderValue, type RenderChainValue } from './template.ts'
