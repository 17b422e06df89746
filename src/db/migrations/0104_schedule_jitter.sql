-- compatible back to 0088
-- How long after its time a run of a schedule may begin, as in its document: `0`, `90s`, `10m`.

alter table schedule add column jitter text not null default '0' check (jitter ~ '^(0|\d{1,9}(\.\d{1,3})?(ms|s|m|h|d))$');
