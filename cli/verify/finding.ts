/** What `sluice verify` has found out about one part of a deployment. */
export interface Finding {
  /** The name of a policy, or of a check such as `store`. */
  name: string
  /** `unknown` if it could not be checked, which is no problem. */
  status: 'ok' | 'problem' | 'unknown'
  text: string
  /** True for a policy that was proven at a path of this command's choice only, which may be no route of the app. */
  madeUp?: true
}

const finding =
  (status: Finding['status']) =>
  (name: string, text: string): Finding => ({ name, status, text: printable(text) })

export const ok = finding('ok')
export const problem = finding('problem')
export const unknown = finding('unknown')

/** Texts contain what a server has answered, which must not control a terminal. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are replaced
const printable = (text: string) => text.replace(/[\x00-\x1f\x7f-\x9f]/g, '\ufffd')
