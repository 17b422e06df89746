/** The space of a table's rows that are not visible. */
export const RowGap = ({ px, columns }: { readonly px: number; readonly columns: number }) =>
  px > 0 ? (
    <tr aria-hidden="true">
      <td colSpan={columns} style={{ height: px, padding: 0 }} />
    </tr>
  ) : null;
