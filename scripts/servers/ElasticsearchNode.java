import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.elasticsearch.common.logging.LogConfigurator;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.env.Environment;
import org.elasticsearch.node.InternalSettingsPreparer;
import org.elasticsearch.node.Node;
import org.elasticsearch.plugins.PluginsLoader;

/** Starts a node with the modules below its home. The program of the distribution is in no package. */
public class ElasticsearchNode {
    public static void main(String[] arguments) throws Exception {
        LogConfigurator.configureESLogging();
        Environment environment = InternalSettingsPreparer.prepareEnvironment(
            Settings.builder().put("path.home", System.getProperty("es.path.home")).build(),
            Map.of(), Path.of(System.getProperty("es.path.conf")), () -> "node");
        LogConfigurator.configure(environment, true);
        PluginsLoader modules = PluginsLoader.createPluginsLoader(
            PluginsLoader.loadModulesBundles(environment.modulesDir()),
            PluginsLoader.loadPluginsBundles(environment.pluginsDir()),
            Map.of(), false);
        new Node(environment, modules).start();
        new CountDownLatch(1).await();
    }
}
