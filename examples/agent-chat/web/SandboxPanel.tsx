import type { Policy, SandboxView } from "../shared/events.ts";
import type { State } from "./state.ts";
import { bytes, clock } from "./text.ts";
import { useNow } from "./useNow.ts";

const kStates: Record<SandboxView["state"], string> = {
  none: "no sandbox",
  pending: "starting",
  running: "running",
  paused: "paused",
  ending: "ending",
  ended: "ended",
  failed: "failed",
};

export function SandboxPanel({ state, onRenew, disabled }: { state: State; onRenew: () => void; disabled: boolean }) {
  const { sandbox } = state;
  return (
    <aside className="panel" aria-label="Sandbox">
      <div className="head">
        <h2>Sandbox</h2>
        <span className="state" data-state={sandbox.problem && sandbox.state === "running" ? "unknown" : sandbox.state} role="status">
          {sandbox.problem && sandbox.state === "running" ? "not reachable" : kStates[sandbox.state]}
        </span>
      </div>
      {sandbox.id && (
        <p className="id" title={sandbox.id}>
          {[sandbox.image, sandbox.runtime].filter(Boolean).join(" · ")} <code>{sandbox.id}</code>
        </p>
      )}
      {(sandbox.problem || sandbox.message) && (
        <div className="trouble" role="alert">
          <p>{sandbox.problem?.message ?? sandbox.message}</p>
          {sandbox.problem?.advice && <p className="advice">{sandbox.problem.advice}</p>}
        </div>
      )}
      <Gauges state={state} />
      <button type="button" className="button wide" onClick={onRenew} disabled={disabled || sandbox.state === "pending"}>
        New sandbox
      </button>
      <Rules policy={state.policy} />
    </aside>
  );
}

function Gauges({ state }: { state: State }) {
  const now = useNow(1000);
  const { limits = {}, usage = {}, cpu_share, left_ms, lifetime_ms } = state.sandbox;
  const mega = 1048576;
  const left = left_ms === undefined ? undefined : Math.max(0, left_ms - Math.max(0, now - state.sandboxAt));
  return (
    <div className="gauges">
      {left !== undefined && <Gauge name="Time left" value={left} most={lifetime_ms ?? left} text={clock(left)} low />}
      <Gauge name="Memory" value={usage.memory_bytes} most={(limits.memory_mb ?? 0) * mega} text={of(usage.memory_bytes, (limits.memory_mb ?? 0) * mega, bytes)} />
      <Gauge name="Processor" value={cpu_share} most={1} text={limits.cpu_cores === undefined ? "" : `${Math.round((cpu_share ?? 0) * 100)} % of ${limits.cpu_cores} ${limits.cpu_cores === 1 ? "core" : "cores"}`} calm />
      <Gauge name="Processes" value={usage.pids} most={limits.pids ?? 0} text={of(usage.pids, limits.pids, String)} />
      <Gauge name="Disk" value={usage.disk_bytes} most={(limits.disk_mb ?? 0) * mega} text={of(usage.disk_bytes, (limits.disk_mb ?? 0) * mega, bytes)} />
    </div>
  );
}

function of(value: number | undefined, most: number | undefined, show: (value: number) => string): string {
  if (!most) return "";
  return value === undefined ? `of ${show(most)}` : `${show(value)} of ${show(most)}`;
}

interface GaugeProps {
  name: string;
  value: number | undefined;
  most: number;
  text: string;
  /** Little of it is the warning, not much. */
  low?: boolean;
  calm?: boolean;
}

function Gauge({ name, value, most, text, low = false, calm = false }: GaugeProps) {
  const part = most > 0 ? Math.min(1, (value ?? 0) / most) : 0;
  const level = calm ? "fine" : low ? (part < 0.05 ? "bad" : part < 0.15 ? "warn" : "fine") : part >= 0.98 ? "bad" : part >= 0.8 ? "warn" : "fine";
  return (
    <div className="gauge" data-level={level}>
      <div className="label">
        <span>{name}</span>
        <span className="value">{text || "–"}</span>
      </div>
      <div className="bar" role="meter" aria-label={name} aria-valuemin={0} aria-valuemax={100} aria-valuenow={Math.round(part * 100)} aria-valuetext={text || "not known"}>
        <div style={{ transform: `scaleX(${part})` }} />
      </div>
    </div>
  );
}

function Rules({ policy }: { policy: Policy }) {
  const rules = policy.rules ?? [];
  if (rules.length === 0) return null;
  return (
    <details className="rules" open>
      <summary>Command policy</summary>
      <ul>
        {rules.map((rule, index) => (
          <li key={index} title={rule.reason}>
            <span className={`badge ${rule.action === "deny" ? "bad" : rule.action === "ask" ? "warn" : "good"}`}>{rule.action}</span>
            <span>{rule.name ?? rule.reason ?? "a rule"}</span>
            {rule.program && <code>{rule.program}</code>}
          </li>
        ))}
        <li>
          <span className={`badge ${policy.default === "deny" ? "bad" : policy.default === "ask" ? "warn" : "good"}`}>{policy.default ?? "allow"}</span>
          <span>everything else</span>
        </li>
      </ul>
    </details>
  );
}
