export { createTurns, type InTurn } from './turns.ts'
