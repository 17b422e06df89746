import { PageHead } from "../parts/page-head.tsx";

export function RunPage() {
  return <PageHead title="Run" />;
}
