/** What `sluice verify` has found out about one part of a deployment. */
export interface Finding {
  /** The name of a policy, or of a check such as `store`. */
  name: string
  /** `unknown` if it could not be checked, which is no problem. */
  status: 'ok' | 'problem' | 'unknown'
  text: string
}

export const ok = (name: string, text: string): Finding => ({ name, status: 'ok', text })
export const problem = (name: string, text: string): Finding => ({ name, status: 'problem', text })
export const unknown = (name: string, text: string): Finding => ({ name, status: 'unknown', text })
