/** Lists in the parts of a store. */
import type { StoreRequest } from '../../core/connection/store.ts'

export type PartName = number | string

/** The subject of a list whose limits all have one part. */
export const subjectOf = ([request]: StoreRequest[]): string => request!.limits[0]!.subject

/** Answers items in groups: `answer` returns the answers of one group after the other. The result has the order of the items. */
export async function inGroups<Item, Answer>(
  items: Item[],
  groupOf: (item: Item) => PartName,
  answer: (groups: [PartName, Item[]][]) => Promise<Answer[]>,
): Promise<Answer[]> {
  const groups = new Map<PartName, number[]>()
  for (const [index, item] of items.entries()) {
    const group = groupOf(item)
    groups.set(group, [...(groups.get(group) ?? []), index])
  }
  const answers = await answer(
    [...groups].map(([group, indexes]) => [group, indexes.map((index) => items[index]!)]),
  )
  const inOrder: Answer[] = []
  for (const [at, index] of [...groups.values()].flat().entries()) inOrder[index] = answers[at]!
  return inOrder
}
