/** The arguments of `shards()`. */
import * as v from 'valibot'
import {
  type AddProblem,
  type Input,
  type Named,
  object,
  shortName,
} from '../config/schema/shapes.ts'

const names = v.pipe(
  v.array(shortName, 'a list of names'),
  v.minLength(1, 'at least one name'),
  v.maxLength(64, 'at most 64 names'),
)

const optionFields = () => ({
  /**
   * The names before a change of the list. Clients whose shard changes keep their quotas: `npx sluice shards move` moves them. Remove the
   * option when `npx sluice shards status` reports that nothing is left. One name may be the only database before. Defaults to no move.
   */
  moveFrom: v.optional(names as v.GenericSchema<readonly string[], string[]>),
})

/** Options of `shards`. */
export interface ShardsOptions extends Input<ReturnType<typeof optionFields>>, Named {}

export const schema = object(
  () => ({ shards: names, ...optionFields() }),
  ({ shards, moveFrom }, problem) => {
    checkUnique('shards', shards, problem)
    checkUnique('moveFrom', moveFrom, problem)
  },
)

function checkUnique(field: string, names: string[] = [], problem: AddProblem) {
  names.forEach((name, index) => {
    if (names.indexOf(name) < index) problem([field, index], 'a name that no other shard has')
  })
}
