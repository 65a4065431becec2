// How a Builder records where adapters act.
#include "weights/adapter_site.h"

#include "base/signed.h"
#include "weights/builder.h"

namespace banyan {

AdapterSites WeightLoader::take_adapter_sites() {
  std::unordered_set<std::string_view> names;
  for (const AdapterSite& site : adapter_sites_.sites) {
    for (const AdapterSite::Part& part : site.parts) names.insert(part.name);
  }
  std::erase_if(adapter_sites_.others,
                [&](const std::string& name) { return names.contains(name); });
  return std::move(adapter_sites_);
}

int Builder::adapter_site(std::initializer_list<MatrixPart> parts, int64_t columns) const {
  if (!adaptable_) return -1;
  AdapterSite site{.columns = columns};
  for (const MatrixPart& part : parts) {
    site.parts.push_back({full_name(part.name), part.rows, part.shard});
  }
  std::vector<AdapterSite>& sites = loader_->adapter_sites_.sites;
  sites.push_back(std::move(site));
  return narrow<int>(std::ssize(sites) - 1);
}

Builder Builder::without_adapters() const {
  return Builder(loader_, scope_, share_, false);
}

}  // namespace banyan
