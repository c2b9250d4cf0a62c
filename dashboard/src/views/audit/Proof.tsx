/** The proof that an entry is in the sealed log, checked in this browser. */

import { useEffect, useState } from "preact/hooks";
import { ApiError, get } from "../../api";
import type { AuditProof } from "#types";
import { CAN_CHECK, flaw } from "./inclusion";

type Checked = { proof: AuditProof; wrong: string | null } | { problem: string };

export function Proof({ n }: { n: number }) {
  const [checked, setChecked] = useState<Checked | null>(null);
  useEffect(() => {
    let over = false;
    check(n).then(
      (found) => over || setChecked(found),
      (error: unknown) => over || setChecked({ problem: error instanceof ApiError ? error.detail || error.title : String(error) }),
    );
    return () => void (over = true);
  }, [n]);
  if (checked === null) return <p class="proof">Checking …</p>;
  if ("problem" in checked) return <p class="proof">No proof yet: {checked.problem}</p>;
  const { proof, wrong } = checked;
  return (
    <div class={`proof ${wrong === null ? "well" : "broken"}`} data-proof={wrong === null ? (CAN_CHECK ? "holds" : "unchecked") : "broken"}>
      <p>{verdict(proof, wrong)}</p>
      <pre tabIndex={0} aria-label="The entry and its proof">
        {[proof.entry ?? "(retired: only its hash is kept)", `leaf  ${proof.leaf}`, ...proof.proof.map((hash) => `      ${hash}`)].join("\n")}
      </pre>
    </div>
  );
}

async function check(n: number): Promise<Checked> {
  const proof = await get<AuditProof>(`/api/v1/audit/proof/${n}`);
  return { proof, wrong: CAN_CHECK ? await flaw(proof) : null };
}

function verdict(proof: AuditProof, wrong: string | null): string {
  const way = `${proof.proof.length} hashes lead from entry ${proof.n} to the root of the ${proof.size.toLocaleString("en")} entries that are sealed`;
  if (wrong !== null) return `✕ It does not hold: ${wrong}.`;
  return CAN_CHECK ? `✓ It holds: ${way}. Reckoned in this browser.` : `${way}. This browser reckons hashes only over https or on the hub's own machine.`;
}
