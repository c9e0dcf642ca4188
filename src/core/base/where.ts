/** The items that pass a test: the same list if all do, as in most requests. */
export function where<Item>(list: Item[], test: (item: Item) => boolean): Item[] {
  for (const item of list) if (!test(item)) return list.filter(test)
  return list
}
