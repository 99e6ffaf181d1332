// pgjdbc: all sections.
package drivers;

import java.util.LinkedHashMap;
import java.util.Map;
import org.postgresql.util.DriverInfo;

public final class Main {
    public static void main(String[] args) {
        Map<String, Sections.Section> sections = new LinkedHashMap<>();
        sections.put("connect", Connect::connect);
        sections.put("types_text", Types::text);
        sections.put("types_binary", Types::binary);
        sections.put("prepared", Statements::prepared);
        sections.put("batch", Statements::batch);
        sections.put("transactions", Transactions::transactions);
        sections.put("errors", Transactions::errors);
        sections.put("cancel", Transactions::cancel);
        sections.put("copy", Copy::copy);
        sections.put("cursors", Statements::cursors);
        sections.put("catalog", Catalog::catalog);
        System.exit(Sections.run(DriverInfo.DRIVER_VERSION, sections));
    }
}
