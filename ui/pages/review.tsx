import { PageHead } from "../parts/page-head.tsx";

export function ReviewPage() {
  return <PageHead title="Review" />;
}
