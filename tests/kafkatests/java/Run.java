import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.jar.JarFile;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.platform.engine.DiscoverySelector;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.engine.support.descriptor.ClassSource;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Runs all test classes of the given jars one after another, or only those whose simple names are given.
 *
 * Each test ends with a line on standard output: RESULT, class, test, outcome, milliseconds and reason, separated by tabs.
 */
public class Run {
    /** barnabas does not serve share groups, so each of these tests would wait until its timeout. */
    private static final Set<String> LEFT_OUT = Set.of("ShareConsumerTest", "ShareConsumerRackAwareTest");
    private static final String[] OUTCOMES = {"passed", "aborted", "failed"};

    public static void main(String[] arguments) throws Exception {
        Set<String> wanted = new TreeSet<>(List.of(arguments).subList(1, arguments.length));
        List<DiscoverySelector> selectors = new ArrayList<>();
        for (String path : arguments[0].split(":")) {
            JarFile jar = new JarFile(path);
            jar.stream().map(entry -> entry.getName())
                .filter(name -> name.endsWith("Test.class") && !name.contains("$")).sorted()
                .map(name -> name.substring(0, name.length() - 6).replace('/', '.'))
                .filter(name -> wanted.contains(simple(name)) || wanted.isEmpty() && !LEFT_OUT.contains(simple(name)))
                .forEach(name -> selectors.add(DiscoverySelectors.selectClass(name)));
            jar.close();
        }
        PrintStream out = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> ProcessHandle.current().descendants().forEach(ProcessHandle::destroyForcibly)));
        Thread guard = new Thread(Run::waitForTheEndOfWhoStartedThis);
        guard.setDaemon(true);
        guard.start();
        var request = LauncherDiscoveryRequestBuilder.request().selectors(selectors)
            .configurationParameter("junit.jupiter.extensions.autodetection.enabled", "true")
            .configurationParameter("junit.jupiter.execution.timeout.mode", Boolean.getBoolean("barnabas.patient") ? "disabled" : "enabled")
            .build();
        LauncherFactory.create().execute(request, new Listener(out));
        System.exit(0);
    }

    /** Standard input is a pipe from the Python process. The pipe ends however that process ends. */
    private static void waitForTheEndOfWhoStartedThis() {
        try {
            while (System.in.read() >= 0) {
                continue;
            }
        } catch (java.io.IOException error) {
            // an error means that the Python process has ended, too
        }
        System.exit(1);
    }

    private static String simple(String className) {
        return className.substring(className.lastIndexOf('.') + 1);
    }

    private record Listener(PrintStream out, Map<String, Long> began) implements TestExecutionListener {
        Listener(PrintStream out) {
            this(out, new ConcurrentHashMap<>());
        }

        @Override
        public void executionStarted(TestIdentifier test) {
            began.put(test.getUniqueId(), System.currentTimeMillis());
        }

        @Override
        public void executionFinished(TestIdentifier test, TestExecutionResult result) {
            if (test.isTest() || result.getStatus() == TestExecutionResult.Status.FAILED) {
                String why = result.getThrowable().map(error -> describe(error) + place(error, className(test))).orElse("");
                long took = System.currentTimeMillis() - began.getOrDefault(test.getUniqueId(), 0L);
                out.println(String.join("\t", "RESULT", className(test), name(test), OUTCOMES[result.getStatus().ordinal()],
                    String.valueOf(took), why));
            }
        }
    }

    private static String name(TestIdentifier test) {
        Optional<String> method = test.getSource().filter(MethodSource.class::isInstance).map(source -> ((MethodSource) source).getMethodName());
        String shown = test.getDisplayName().strip();
        Matcher number = Pattern.compile("(?:^| )(\\[\\d+\\])").matcher(shown);
        return method.orElse(shown) + (number.find() ? " " + number.group(1) : "");
    }

    private static String className(TestIdentifier test) {
        return test.getSource().map(source -> source instanceof MethodSource method ? method.getClassName()
            : source instanceof ClassSource type ? type.getClassName() : "").map(Run::simple).orElse("");
    }

    /** The line numbers of the test class in the stack trace. */
    private static String place(Throwable error, String ofClass) {
        return Arrays.stream(error.getStackTrace()).filter(each -> simple(each.getClassName()).startsWith(ofClass))
            .map(each -> " at line " + each.getLineNumber()).collect(Collectors.joining());
    }

    private static String describe(Throwable error) {
        StringBuilder text = new StringBuilder();
        for (Throwable each = error; each != null && text.length() < 1500; each = each.getCause()) {
            text.append(text.isEmpty() ? "" : " / ").append(each);
            if (each == each.getCause()) {
                break;
            }
        }
        return text.toString().replaceAll("\\s+", " ").strip();
    }
}
