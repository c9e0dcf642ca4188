/** Moves between shards that are probably mistakes. */
import { shards } from '../../../src/shards/index.ts'
import { one, testFindings, testMessages } from '../../support/lint.ts'

const moving = (moveFrom: string[], names: string[]) =>
  one({}, { shards: shards(names, { moveFrom }) })

testFindings([
  [
    'The old and the new list have the same names.',
    'same-shards shards.moveFrom',
    moving(['eu-1', 'eu-2'], ['eu-2', 'eu-1']),
    moving(['eu-1', 'eu-2'], ['eu-2', 'eu-1', 'eu-3']),
  ],
  [
    'The old list has a name of the new list in another spelling.',
    'unknown-shard shards.moveFrom',
    moving(['eu-1', 'eu2'], ['eu-1', 'eu-2', 'eu-3']),
    moving(['eu-1', 'eu-2'], ['eu-1', 'eu-3']),
  ],
  [
    'The old list has a name with a zero more.',
    'unknown-shard shards.moveFrom',
    moving(['eu-01'], ['eu-1', 'eu-2']),
    moving(['eu-10'], ['eu-1', 'eu-2']),
  ],
])

testMessages([
  [
    moving(['eu-1'], ['eu-1']),
    'The old and the new list of shards are equal, so no client moves: eu-1.',
  ],
  [
    moving(['eu1'], ['eu-1', 'eu-2']),
    'moveFrom names the shard "eu1", and the new list has "eu-1". These are two databases, and all clients of one would move to the other.',
  ],
])
