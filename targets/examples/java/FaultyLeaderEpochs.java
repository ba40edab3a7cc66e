import java.util.Map;

/**
 * The template with a fault, which the judge must find: when the log start rises into the middle of an epoch, the epoch's
 * entry is dropped, and not put back at the new start. A follower that asks for that epoch is then sent elsewhere.
 */
public class FaultyLeaderEpochs extends LeaderEpochs {
    public static void main(String[] arguments) throws Exception {
        Serve.run("Leader epochs in Java, faulty", "1", Map.of("leader_epochs", new FaultyLeaderEpochs()));
    }

    @Override
    protected void truncateFromStart(long startOffset) {
        entries.removeIf(e -> e.startOffset() < startOffset);
    }
}
